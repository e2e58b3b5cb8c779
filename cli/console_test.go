package cli

import (
	"bytes"
	"context"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/sockets"
	"github.com/mcsh-dev/mcsh/ui"
)

// TestConsoleRefused: no console is served to people whom nobody knows, and its settings must say yes or no.
func TestConsoleRefused(t *testing.T) {
	for _, test := range []struct {
		name, args, env string
		status          int
		want            string
	}{
		{"beyond this machine", "--listen 0.0.0.0:0 --no-auth --console", "", exitUsage, "--console: others can reach this address"},
		{"behind a proxy", "--listen 127.0.0.1:0 --public-url https://mcp.example.com --console", "", exitUsage, "--console: others can reach this address"},
		{"under another name", "--listen 127.0.0.1:0 --allow-host mcp.example.com --console", "", exitUsage, "--console: others can reach this address"},
		{"under a name of a variable", "--listen 127.0.0.1:0 --console", allowHostVariable + "=mcp.example.com", exitUsage, "--console: others can reach this address"},
		{"on and off", "--console --no-console", "", exitUsage, "--console and --no-console exclude each other"},
		{"a variable that says neither", "", consoleVariable + "=maybe", exitConfig, consoleVariable + "=maybe: want on or off"},
		{"another such variable", "", consoleResultsVariable + "=1", exitConfig, consoleResultsVariable + "=1: want on or off"},
	} {
		var out, said bytes.Buffer
		status := run(t.Context(), append([]string{"serve", "--state", "off"}, strings.Fields(test.args)...), strings.NewReader(""), &out, &said, []string{test.env})
		if status != test.status || !strings.Contains(said.String(), test.want) {
			t.Errorf("%s: status %d, %s", test.name, status, said.String())
		}
	}
}

// TestConsoleListens: where the listener has a console by itself.
func TestConsoleListens(t *testing.T) {
	_, inside := containerAddress()
	for _, test := range []struct {
		name  string
		flags consoleFlags
		l     listenFlags
		want  bool
	}{
		{"this machine", consoleFlags{}, listenFlags{address: "127.0.0.1:0"}, !inside},
		{"with tokens", consoleFlags{}, listenFlags{address: "0.0.0.0:0", auth: authFlags{tokens: "tokens"}}, !inside},
		{"everybody", consoleFlags{}, listenFlags{address: "0.0.0.0:0", noAuth: true}, false},
		{"a proxy in front", consoleFlags{}, listenFlags{address: "127.0.0.1:0", proxies: []string{"10.0.0.0/8"}}, false},
		{"another name", consoleFlags{}, listenFlags{address: "127.0.0.1:0", hosts: []string{"mcp.example.com"}}, false},
		{"a runtime", consoleFlags{}, listenFlags{address: "127.0.0.1:0", runtime: true}, false},
		{"a container of a runtime", consoleFlags{}, listenFlags{address: "10.0.0.2:0", contained: true, auth: authFlags{tokens: "tokens"}}, false},
		{"a runtime, wanted", consoleFlags{on: true}, listenFlags{address: "10.0.0.2:0", contained: true, auth: authFlags{tokens: "tokens"}}, true},
		{"unwanted", consoleFlags{off: true}, listenFlags{address: "127.0.0.1:0"}, false},
	} {
		if got := test.flags.listens(&test.l); got != test.want {
			t.Errorf("%s: got %t", test.name, got)
		}
	}
}

// TestConsoleFront: the word of the address opens the pages once, for a browser of the same user, and its cookie goes only to paths
// that no program on another port knows.
func TestConsoleFront(t *testing.T) {
	f := &consoleFront{at: netip.MustParseAddrPort("127.0.0.1:80"), opens: true, base: "/ROOM/", session: "session", once: "once"}
	f.find = func(context.Context) (map[string]*control.Client, error) { return nil, nil }
	var err error
	if f.chooser, err = ui.NewChooser(f.base, f.choices); err != nil {
		t.Fatal(err)
	}
	get := func(path, cookie string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest("GET", path, nil), httptest.NewRecorder()
		r.Header.Set("Cookie", cookie)
		f.ServeHTTP(w, r)
		return w
	}
	w := get("/?once=once", "")
	if cookie := w.Header().Get("Set-Cookie"); w.Code != 303 || w.Header().Get("Location") != "/ROOM/" || !strings.HasPrefix(cookie, "mcsh-console=session; Path=/ROOM/; HttpOnly; SameSite=Strict") {
		t.Errorf("the word: %d %v", w.Code, w.Header())
	}
	for _, test := range []struct {
		path, cookie string
		status       int
	}{
		{"/?once=once", "", 403},
		{"/ROOM/", "", 403},
		{"/ROOM/", "mcsh-console=x", 403},
		{"/", "mcsh-console=session", 403},
		{"/g/x/", "mcsh-console=session", 403},
		{"/ROOM/", "mcsh-console=session", 200},
		{"/ROOM/g/x/", "mcsh-console=session", 404},
	} {
		if w := get(test.path, test.cookie); w.Code != test.status {
			t.Errorf("%s with %q: status %d", test.path, test.cookie, w.Code)
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	at := netip.MustParseAddrPort
	for _, test := range []struct {
		name   string
		opens  bool
		socket sockets.Socket
		want   bool
	}{
		{"this user", true, sockets.Socket{Local: at(r.RemoteAddr), Remote: at("127.0.0.1:80"), User: os.Getuid()}, true},
		{"root", true, sockets.Socket{Local: at(r.RemoteAddr), Remote: at("127.0.0.1:80")}, true},
		{"another user", true, sockets.Socket{Local: at(r.RemoteAddr), Remote: at("127.0.0.1:80"), User: os.Getuid() + 1}, false},
		{"another user, who got the printed address", false, sockets.Socket{Local: at(r.RemoteAddr), Remote: at("127.0.0.1:80"), User: os.Getuid() + 1}, true},
		{"another user elsewhere", true, sockets.Socket{Local: at(r.RemoteAddr), Remote: at("127.0.0.1:81"), User: os.Getuid() + 1}, true},
	} {
		f.opens = test.opens
		if got := f.ours(r, func() []sockets.Socket { return []sockets.Socket{test.socket} }); got != test.want {
			t.Errorf("%s: got %t", test.name, got)
		}
	}
}
