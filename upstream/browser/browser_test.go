package browser_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/upstream/browser"
)

// shown names the file into which this process writes its arguments, as a browser.
const shown = "MCSH_TEST_SHOWN"

func TestMain(m *testing.M) {
	if path := os.Getenv(shown); path != "" {
		if err := os.WriteFile(path+".part", []byte(strings.Join(os.Args[1:], " ")), 0o600); err != nil {
			panic(err)
		}
		_ = os.Rename(path+".part", path) // so readers see all of it
		return
	}
	os.Exit(m.Run())
}

// TestFind: $BROWSER goes before the programs of the platform, and without a screen there is none.
func TestFind(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"xdg-open", "open", "lynx"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/false\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	for name, test := range map[string]struct {
		platform string
		env      map[string]string
		found    bool
	}{
		"a screen":              {"linux", map[string]string{"DISPLAY": ":0"}, true},
		"another screen":        {"linux", map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, true},
		"no screen":             {"linux", nil, false},
		"no screen, but named":  {"linux", map[string]string{"BROWSER": "none:lynx -x"}, true},
		"named and not there":   {"linux", map[string]string{"DISPLAY": ":0", "BROWSER": "none"}, false},
		"named and empty":       {"linux", map[string]string{"DISPLAY": ":0", "BROWSER": ":"}, false},
		"a platform with one":   {"darwin", nil, true},
		"a program not there":   {"windows", nil, false},
		"a platform without it": {"plan9", map[string]string{"DISPLAY": ":0"}, false},
	} {
		opener, err := browser.Find(test.platform, test.env)
		if found := err == nil; found != test.found || !found && !errors.Is(err, browser.ErrNone) {
			t.Errorf("%s: %+v, %v; found should be %v", name, opener, err, test.found)
		}
	}
}

// TestOpen: the address is one argument, where the command wants it, and only a web address is opened.
func TestOpen(t *testing.T) {
	const address = "https://example.com/a?b=c&d=$(e);f g"
	for command, want := range map[string]string{
		"":           address,
		" -new":      "-new " + address,
		" --u=%s -x": "--u=" + address + " -x",
	} {
		path := filepath.Join(t.TempDir(), "shown")
		t.Setenv(shown, path)
		opener, err := browser.Find("linux", map[string]string{"BROWSER": os.Args[0] + command})
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"file:///etc/passwd", "-x", "javascript:alert(1)"} {
			if opener.Open(bad, func(error) {}) == nil {
				t.Errorf("%s was opened", bad)
			}
		}
		if err := opener.Open(address, func(err error) { t.Errorf("%q fails: %v", command, err) }); err != nil {
			t.Fatal(err)
		}
		var got []byte
		for end := time.Now().Add(time.Minute); time.Now().Before(end) && got == nil; time.Sleep(time.Millisecond) {
			got, _ = os.ReadFile(path)
		}
		if string(got) != want {
			t.Errorf("%q shows %q, want %q", command, got, want)
		}
	}
	if err := (browser.Opener{}).Open(address, nil); !errors.Is(err, browser.ErrNone) {
		t.Errorf("no opener: %v", err)
	}
}

// TestOpenFails: a program that fails later is reported.
func TestOpenFails(t *testing.T) {
	opener, err := browser.Find("linux", map[string]string{"BROWSER": "false"})
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	if err := opener.Open("https://example.com", func(err error) { failed <- err }); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("got %v", err)
	}
}

// TestCallback: only the right request is answered, and what it had is returned whole.
func TestCallback(t *testing.T) {
	l, err := browser.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(l.URI, "http://127.0.0.1:") || !strings.HasSuffix(l.URI, "/callback") {
		t.Errorf("the address is %s", l.URI)
	}
	var visits sync.WaitGroup
	defer visits.Wait()
	visits.Go(func() {
		for _, test := range []struct {
			method, address string
			status          int
		}{
			{"GET", "?state=wrong&code=c", 404},
			{"GET", "?code=c", 404},
			{"GET", "/x?state=right", 404},
			{"POST", "?state=right", 404},
			{"HEAD", "?state=right", 404},
			{"GET", "?code=" + strings.Repeat("c", 200<<10) + "&state=right", 431},
			{"GET", "?code=a%2Bb&state=right&iss=i", 200},
		} {
			req, err := http.NewRequest(test.method, l.URI+test.address, nil)
			if err != nil {
				t.Error(err)
				return
			}
			response, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Errorf("%s: %v", test.address[:min(20, len(test.address))], err)
				continue
			}
			body, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if response.StatusCode != test.status || strings.Contains(string(body), "a+b") {
				t.Errorf("%s: status %d, want %d: %s", test.address[:min(20, len(test.address))], response.StatusCode, test.status, body)
			}
			if test.status == 200 && (response.Header.Get("Referrer-Policy") != "no-referrer" || !strings.Contains(string(body), "close this tab")) {
				t.Errorf("the page: %v %s", response.Header, body)
			}
		}
	})
	if got, err := l.Wait(t.Context(), right); err != nil || got != l.URI+"?code=a%2Bb&state=right&iss=i" {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := http.Get(l.URI); err == nil {
		t.Error("it listens after the answer")
	}
}

// TestTakenPort: a fixed port that is taken on either address of localhost is an error.
func TestTakenPort(t *testing.T) {
	taken := 0
	for _, network := range []string{"tcp4", "tcp6"} {
		host := map[string]string{"tcp4": "127.0.0.1:0", "tcp6": "[::1]:0"}[network]
		other, err := net.Listen(network, host)
		if err != nil {
			continue // no IPv6
		}
		taken++
		if l, err := browser.Listen(other.Addr().(*net.TCPAddr).Port); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("%s: %v, %v", network, l, err)
		}
		other.Close()
	}
	if taken == 0 {
		t.Error("nothing was taken")
	}
}

// right accepts the address with the right state.
func right(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Query().Get("state") == "right"
}

// TestManyConnections: 16 connections are served at once. The next one waits until one of them ends.
func TestManyConnections(t *testing.T) {
	l, err := browser.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(l.URI)
	if err != nil {
		t.Fatal(err)
	}
	var visits sync.WaitGroup
	defer visits.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	visits.Go(func() {
		defer cancel() // of a wait that nobody answers
		var all []net.Conn
		for range 17 {
			c, err := net.Dial("tcp", at.Host)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			all = append(all, c)
		}
		last, answer := all[16], make([]byte, 1)
		_, err := io.WriteString(last, "GET /callback?state=right HTTP/1.1\r\nHost: "+at.Host+"\r\n\r\n")
		_ = last.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if _, early := last.Read(answer); err != nil || !errors.Is(early, os.ErrDeadlineExceeded) {
			t.Errorf("beside 16 others: %v, %v", err, early)
		}
		all[0].Close()
		_ = last.SetReadDeadline(time.Time{})
		if _, err := last.Read(answer); err != nil {
			t.Errorf("beside 15 others: %v", err)
		}
	})
	if _, err := l.Wait(ctx, right); err != nil {
		t.Error(err)
	}
}

// TestCallbackEnds: the wait ends with its context, and a port that is taken is an error.
func TestCallbackEnds(t *testing.T) {
	l, err := browser.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("no time")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := l.Wait(ctx, right); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
	if l, err = browser.Listen(0); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
