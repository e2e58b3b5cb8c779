package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/porttest"
	"github.com/mcsh-dev/mcsh/upstream/logins"
)

// An authorizationServer signs everybody in at once, and protects an MCP server at /mcp with the tokens that it has given.
type authorizationServer struct {
	*httptest.Server
	device, revokes bool
	refuse          bool   // the person says no
	revoking        func() // before a token is revoked; nil: nothing

	mu      sync.Mutex
	codes   map[string]url.Values // by code: what its request had; guarded by mu
	given   int                   // tokens; guarded by mu
	revoked []string              // guarded by mu
}

func newAuthorizationServer(t *testing.T) *authorizationServer {
	t.Helper()
	s := &authorizationServer{codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL}, "scopes_supported": []string{"read"}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		metadata := map[string]any{
			"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "registration_endpoint": s.URL + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
			"grant_types_supported":                 []string{"authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"},
			"token_endpoint_auth_methods_supported": []string{"none"},
		}
		if s.device {
			metadata["device_authorization_endpoint"] = s.URL + "/device"
		}
		if s.revokes {
			metadata["revocation_endpoint"] = s.URL + "/revoke"
		}
		answer(w, metadata)
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, r *http.Request) {
		var asked map[string]any
		json.NewDecoder(r.Body).Decode(&asked)
		asked["client_id"] = "client"
		w.WriteHeader(http.StatusCreated)
		answer(w, asked)
	})
	mux.HandleFunc("GET /authorize", s.authorize)
	mux.HandleFunc("POST /device", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"device_code": "d", "user_code": "ABCD-EFGH", "verification_uri": s.URL + "/enter", "expires_in": 600, "interval": 1})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.given++
		answer(w, map[string]any{
			"access_token": fmt.Sprint("SECRET-access-", s.given), "refresh_token": fmt.Sprint("SECRET-refresh-", s.given), "token_type": "Bearer", "expires_in": 3600,
		})
	})
	mux.HandleFunc("POST /revoke", func(_ http.ResponseWriter, r *http.Request) {
		if s.revoking != nil {
			s.revoking()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.revoked = append(s.revoked, r.FormValue("token"))
	})
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "hello"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello"}}}, nil, nil
	})
	endpoint := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer SECRET-access-") {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.URL+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		endpoint.ServeHTTP(w, r)
	})
	return s
}

// authorize redirects the browser, as a person who agrees or refuses makes it.
func (s *authorizationServer) authorize(w http.ResponseWriter, r *http.Request) {
	query := url.Values{"state": {r.FormValue("state")}}
	if s.refuse {
		query.Set("error", "access_denied")
	} else {
		query.Set("code", "code")
	}
	http.Redirect(w, r, r.FormValue("redirect_uri")+"?"+query.Encode(), http.StatusFound)
}

// browses makes this process a browser: it opens its last argument and prints nothing.
const browses = "MCSH_TEST_BROWSER"

// browse is a browser that shows a page.
func browse(address string) (string, error) {
	response, err := http.Get(address)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	return string(page), err
}

// A person runs mcsh with a configuration and a state directory of their own.
type person struct {
	t          *testing.T
	home       string
	env        []string
	stdin      io.Reader
	stdout     io.Writer    // nil: out
	out, trace bytes.Buffer // what the last command wrote
}

func newPerson(t *testing.T, config string) *person {
	t.Helper()
	p := &person{t: t, home: t.TempDir(), stdin: strings.NewReader("")}
	path := filepath.Join(p.home, "mcp.json")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p.env = []string{"HOME=" + p.home, "MCSH_CONFIG=" + path, "MCSH_TOOLHIVE=off", "PATH=" + os.Getenv("PATH")}
	return p
}

// store opens the sign-ins of the person.
func (p *person) store() *logins.Store {
	p.t.Helper()
	store, err := logins.Open(filepath.Join(p.home, ".local", "state", "mcsh", "logins"), logins.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { store.Close() })
	return store
}

// run runs a command, whose exit status and output must be the wanted ones.
func (p *person) run(status int, want string, args ...string) {
	p.t.Helper()
	p.out.Reset()
	p.trace.Reset()
	var stdout io.Writer = &p.out
	if p.stdout != nil {
		stdout = p.stdout
	}
	got := run(p.t.Context(), args, p.stdin, stdout, &p.trace, p.env)
	all := p.out.String() + p.trace.String()
	if got != status || !strings.Contains(all, want) {
		p.t.Errorf("mcsh %s: status %d, want %d with %q:\n%s", strings.Join(args, " "), got, status, want, all)
	}
	if strings.Contains(all, "SECRET") {
		p.t.Errorf("mcsh %s shows a token:\n%s", strings.Join(args, " "), all)
	}
}

// TestLogin signs in with a browser, uses the tokens, and signs out.
func TestLogin(t *testing.T) {
	s := newAuthorizationServer(t)
	s.revokes = true
	p := newPerson(t, `{"mcpServers": {"box": {"url": "`+s.URL+`/mcp"}, "shut": {"url": "`+s.URL+`/mcp", "headers": {"Authorization": "Bearer x"}},
		"program": {"command": "true"}, "robot": {"url": "`+s.URL+`/mcp", "oauth": {"issuer": "`+s.URL+`", "clientId": "a", "clientSecret": "b"}}}}`)
	t.Setenv(browses, "1")
	p.env = append(p.env, "BROWSER="+os.Args[0])
	p.run(0, "nobody has signed in to any server", "logins")
	p.run(exitAuth, "mcsh login box", "tools", "ls", "box")
	p.run(exitUsage, "did you mean box?", "login", "bux")
	p.run(exitUsage, "no address (url)", "login", "program")
	p.run(exitUsage, "has a header Authorization", "login", "shut")
	p.run(exitUsage, "signs in by itself", "login", "robot")
	p.run(exitUsage, "name one server, or give --all", "login")
	p.run(exitUsage, "sign-ins are kept in the state directory", "login", "box", "--state", "off")
	p.run(0, "signed in to box; scopes: read; the access token ends at", "login", "box")
	p.run(0, "box/hello", "tools", "ls", "box")
	p.run(0, "box  -  read  the access token ends at", "logins")
	p.run(0, `"server":"box"`, "logins", "--json")
	p.run(0, "box: skipped: already signed in", "login", "--all")
	p.run(exitUsage, "did you mean box?", "logout", "bix")
	p.run(0, `"revoked":true`, "logout", "--all", "--json")
	s.mu.Lock()
	if fmt.Sprint(s.revoked) != "[SECRET-refresh-1 SECRET-access-1]" {
		t.Errorf("revoked are %v", s.revoked)
	}
	s.mu.Unlock()
	p.run(exitAuth, "mcsh login box", "tools", "ls", "box", "--refresh")
	s.refuse = true
	p.run(exitAuth, "access_denied", "login", "box")
	p.run(0, "nobody has signed in", "logins")
}

// TestLoginElsewhere signs in where no browser is: with a pasted address, a pasted query, or on another device.
func TestLoginElsewhere(t *testing.T) {
	s := newAuthorizationServer(t)
	s.device = true
	config := `{"mcpServers": {"box": {"url": "` + s.URL + `/mcp"}}}`
	for name, test := range map[string]struct {
		args  []string
		paste func(address string) string // what the person pastes for the address that the browser ended at
		want  string
	}{
		"address": {[]string{"--no-browser"}, func(a string) string {
			return "\nnonsense\n" + strings.Replace(a, "state=", "state=x", 1) + "\n" + a + "\n"
		}, "belongs to another sign-in"},
		"long": {[]string{"--no-browser"}, func(a string) string {
			return strings.Repeat("x", 200<<10) + "\n" + a + "\n"
		}, "longer than 64 KiB"},
		"query":                      {[]string{"--no-browser"}, func(a string) string { _, query, _ := strings.Cut(a, "?"); return query + "\n" }, "signed in to box"},
		"device":                     {[]string{"--device"}, nil, "enter the code ABCD-EFGH"},
		"no browser, so on a device": {nil, nil, "enter the code ABCD-EFGH"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t, config)
			paste, pasted := io.Pipe()
			defer pasted.Close()
			p.stdin = paste
			screen := &watched{seen: make(chan string, 1), last: "paste that address here.\n"}
			if test.paste != nil {
				alongside(t, func() { pasted.Write([]byte(test.paste(redirected(t, addressIn(screen.next(t)))))) })
			}
			status := run(t.Context(), append([]string{"login", "box"}, test.args...), p.stdin, io.Discard, screen, p.env)
			if text := screen.String(); status != 0 || !strings.Contains(text, test.want) || !strings.Contains(text, "signed in to box") {
				t.Errorf("status %d: %s", status, text)
			}
			p.run(0, "its issuer revokes no tokens", "logout", "box")
		})
	}
}

// TestLoginAllElsewhere signs in to two servers with pasted addresses, one after another.
func TestLoginAllElsewhere(t *testing.T) {
	s := newAuthorizationServer(t)
	p := newPerson(t, `{"mcpServers": {"a": {"url": "`+s.URL+`/mcp"}, "b": {"url": "`+s.URL+`/mcp"}}}`)
	paste, pasted := io.Pipe()
	defer pasted.Close()
	screen := &watched{seen: make(chan string, 2), last: "paste that address here.\n"}
	alongside(t, func() {
		first := redirected(t, addressIn(screen.next(t)))
		if _, err := browse(first); err != nil { // the browser is on this machine, for once
			t.Error(err)
		}
		text := screen.next(t)
		_, second, _ := strings.Cut(text, "signed in to a")
		pasted.Write([]byte(first + "\n" + redirected(t, addressIn(second)) + "\n"))
	})
	status := run(t.Context(), []string{"login", "--all", "--no-browser"}, paste, io.Discard, screen, p.env)
	for _, want := range []string{"signed in to a", "belongs to another sign-in", "signed in to b"} {
		if text := screen.String(); status != 0 || !strings.Contains(text, want) {
			t.Errorf("status %d, want %q in %s", status, want, text)
		}
	}
}

// alongside runs what a person does while a command runs. The test waits for its end.
func alongside(t *testing.T, do func()) {
	var ended sync.WaitGroup
	ended.Go(do)
	t.Cleanup(ended.Wait)
}

// watched is a screen that passes on what it shows when a text has appeared.
type watched struct {
	seen chan string
	last string

	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(b)
	if strings.HasSuffix(w.text.String(), w.last) {
		w.seen <- w.text.String()
	}
	return len(b), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// next waits for the text, or for the end of the test.
func (w *watched) next(t *testing.T) string {
	select {
	case text := <-w.seen:
		return text
	case <-t.Context().Done():
		return ""
	}
}

// addressIn returns the address that a screen shows on a line of its own.
func addressIn(text string) string {
	for line := range strings.Lines(text) {
		if address := strings.TrimSpace(line); strings.HasPrefix(address, "http") {
			return address
		}
	}
	return ""
}

// redirected returns the address that a browser is sent to from an address, and does not go there.
func redirected(t *testing.T, address string) string {
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Get(address)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer response.Body.Close()
	return response.Header.Get("Location")
}

// TestLoginEnds: a wrong answer does not end the wait for the right one, and the time or a Ctrl-C does.
func TestLoginEnds(t *testing.T) {
	s := newAuthorizationServer(t)
	p := newPerson(t, `{"mcpServers": {"box": {"url": "`+s.URL+`/mcp"}}}`)
	p.run(exitAuth, "nobody signed in within 100ms", "login", "box", "--wait", "100ms")
	ctx, cancel := context.WithCancel(t.Context())
	screen := &watched{seen: make(chan string, 1), last: "\n\n"}
	alongside(t, func() {
		to := redirected(t, addressIn(screen.next(t)))
		for _, wrong := range []string{strings.Replace(to, "state=", "state=x", 1), strings.Replace(to, "/callback", "/", 1)} {
			if page, err := browse(wrong); err != nil || !strings.Contains(page, "404") {
				t.Errorf("%s: %q, %v", wrong, page, err)
			}
		}
		cancel()
	})
	if status := run(ctx, []string{"login", "box"}, strings.NewReader(""), io.Discard, screen, p.env); status != exitInterrupted {
		t.Errorf("interrupted: status %d, %s", status, screen.String())
	}
}

// TestTwoLogins: a second login of a server with a fixed port says that the port is in use, and the first one ends well.
func TestTwoLogins(t *testing.T) {
	s := newAuthorizationServer(t)
	_, port, _ := net.SplitHostPort(porttest.Free(t))
	p := newPerson(t, fmt.Sprintf(`{"mcpServers": {"box": {"url": "%s/mcp", "oauth": {"clientId": "registered", "callbackPort": %s}}}}`, s.URL, port))
	screen := &watched{seen: make(chan string, 1), last: "\n\n"}
	alongside(t, func() {
		address := addressIn(screen.next(t))
		if want := url.QueryEscape(fmt.Sprintf("http://localhost:%s/callback", port)); !strings.Contains(address, want) || !strings.Contains(address, "client_id=registered") {
			t.Errorf("the address is %s, want %s in it", address, want)
		}
		p.run(exitAuth, "another mcsh login of the server may be waiting there", "login", "box")
		if _, err := browse(address); err != nil {
			t.Error(err)
		}
	})
	if status := run(t.Context(), []string{"login", "box"}, strings.NewReader(""), io.Discard, screen, p.env); status != 0 {
		t.Errorf("status %d, %s", status, screen.String())
	}
}

// TestLoginNoStore: a default directory that cannot be used stops no other command. A sign-in says so before the person begins.
func TestLoginNoStore(t *testing.T) {
	s := newAuthorizationServer(t)
	p := newPerson(t, `{"mcpServers": {"box": {"url": "`+s.URL+`/mcp"}, "files": {"builtin": "filesystem", "root": "."}}}`)
	shared := filepath.Join(p.home, "shared", "mcsh", "logins")
	if err := errors.Join(os.MkdirAll(shared, 0o700), os.Chmod(shared, 0o770)); err != nil {
		t.Fatal(err)
	}
	for state, want := range map[string]string{"/etc/passwd": "not a directory", filepath.Join(p.home, "shared"): "chmod go="} {
		p.env = append(p.env, "XDG_STATE_HOME="+state)
		p.run(0, "files/read_text_file", "tools", "ls", "files")
		p.run(exitConfig, want, "login", "box", "--no-browser")
		p.run(exitConfig, want, "logins")
		p.run(0, "servers are called without sign-ins", "serve")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given != 0 {
		t.Errorf("%d sign-ins were made for nothing", s.given)
	}
}

// TestLoginScopes: a sign-in asks again for the scopes of this issuer, and not for those of another one or another server.
func TestLoginScopes(t *testing.T) {
	s := newAuthorizationServer(t)
	p := newPerson(t, `{"mcpServers": {"box": {"url": "`+s.URL+`/mcp"}}}`)
	store := p.store()
	before := func(resource, issuer, scope string, expiry time.Time) {
		key := logins.Key{Server: "box", Resource: resource, Issuer: issuer}
		if err := store.Put(t.Context(), logins.Login{Key: key, Scopes: []string{scope}, Made: time.Now(), AccessToken: "SECRET", Expiry: expiry}); err != nil {
			t.Fatal(err)
		}
	}
	before("https://other.example/mcp", s.URL, "theirs", time.Time{})
	before(s.URL+"/mcp", "https://other.example", "others", time.Time{})
	before(s.URL+"/mcp", s.URL, "write", time.Now().Add(-time.Hour)) // the newest, and nothing refreshes it
	t.Setenv(browses, "1")
	p.env = append(p.env, "BROWSER="+os.Args[0])
	p.run(0, "scopes: read write;", "login", "--all")
	p.run(0, "box: skipped: already signed in", "login", "--all")
}

// TestLogoutAll deletes all sign-ins before it asks an issuer, and a full disk of its output does not stop it.
func TestLogoutAll(t *testing.T) {
	s := newAuthorizationServer(t)
	s.revokes = true
	p := newPerson(t, `{"mcpServers": {"a": {"url": "`+s.URL+`/mcp"}, "b": {"url": "`+s.URL+`/mcp"}}}`)
	t.Setenv(browses, "1")
	p.env = append(p.env, "BROWSER="+os.Args[0])
	p.run(0, "signed in to b", "login", "--all")
	store := p.store()
	s.revoking = func() {
		if list, err := store.All(); err != nil || len(list) > 0 {
			t.Errorf("an issuer is asked while there are %v, %v", list, err)
		}
	}
	p.stdout = broken{}
	p.run(exitFailed, "signed out of b", "logout", "--all", "--json")
	p.stdout = nil
	p.run(0, "nobody has signed in", "logins")
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.revoked) != 4 {
		t.Errorf("revoked are %v", s.revoked)
	}
}

// broken is an output that takes nothing.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestLoginNotNeeded: a server that works without a sign-in says so.
func TestLoginNotNeeded(t *testing.T) {
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		return mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	}, nil))
	defer server.Close()
	p := newPerson(t, `{"mcpServers": {"open": {"url": "`+server.URL+`/mcp"}}}`)
	p.run(0, "open: this server works without a sign-in", "login", "open")
}
