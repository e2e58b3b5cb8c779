package cli

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/porttest"
	"github.com/mcsh-dev/mcsh/internal/signintest"
)

// gateways returns the ids of a person's running gateways.
func (p *person) gateways() (ids []string) {
	p.t.Helper()
	found, err := control.Find(filepath.Join(p.home, ".local", "state", "mcsh"))
	if err != nil {
		p.t.Fatal(err)
	}
	for id := range found {
		ids = append(ids, id)
	}
	return ids
}

// TestLoginGateway signs in within a running gateway. Another gateway of the person uses the sign-in, too.
func TestLoginGateway(t *testing.T) {
	s := newAuthorizationServer(t)
	s.revokes = true
	p := newPerson(t, `{"mcpServers": {"box": {"url": "`+s.URL+`/mcp"}, "program": {"command": "true"}}}`)
	calls := []func() string{p.gateway(), p.gateway()}
	for _, call := range calls {
		if text := call(); !strings.Contains(text, "mcsh login box") {
			t.Fatalf("before the sign-in: %s", text)
		}
	}
	ids := p.gateways()
	if len(ids) != 2 {
		t.Fatalf("there are %v", ids)
	}
	t.Setenv(browses, "1")
	gateway := []string{"--gateway", ids[0]}
	in := func(status int, want string, args ...string) {
		t.Helper()
		p.run(status, want, append(args, gateway...)...)
	}
	p.env = append(p.env, "BROWSER="+os.Args[0])
	in(0, "nobody has signed in to any server", "logins")
	in(exitFailed, "did you mean box?", "login", "bux")
	in(exitFailed, "no address (url)", "login", "program")
	in(exitUsage, "--all is for sign-ins without --gateway", "login", "--all")
	in(exitUsage, "--config is for sign-ins without --gateway", "login", "box", "--config", "mcp.json")
	in(exitUsage, "--store-logins is for sign-ins without --gateway", "login", "box", "--store-logins")
	in(exitFailed, "the scopes cannot be asked for", "login", "box", "--scope", "a b")
	in(0, "signed in to box; scopes: read; the access token ends at", "login", "box")
	in(0, "the tokens are in the gateway's /", "logins")
	for i, call := range calls {
		if text := call(); !strings.Contains(text, "hello") || strings.Contains(text, "mcsh login") {
			t.Errorf("gateway %d, after the sign-in: %s", i, text)
		}
	}
	in(0, "box  -  read  the access token ends at", "logins")
	p.run(0, "box  -  read  the access token ends at", "logins") // it is the same store
	in(exitFailed, "did you mean box?", "logout", "bix")
	in(0, "its issuer has revoked the tokens", "logout", "box")
	in(0, "nobody has signed in", "logins")
	s.mu.Lock()
	s.refuse = true
	s.mu.Unlock()
	in(exitAuth, "agree on the page of the issuer", "login", "box")
	p.run(exitUnreachable, "no gateway of this user has the id", "login", "box", "--gateway", "none")
}

// TestLoginGatewayPasted: the browser is elsewhere, and the person brings the address; another one does not end the sign-in, also
// if a page sends the browser to one that is too long for the gateway.
func TestLoginGatewayPasted(t *testing.T) {
	s := newAuthorizationServer(t)
	s.device = true
	p := newPerson(t, `{"mcpServers": {"box": {"url": "`+s.URL+`/mcp"}}}`)
	p.gateway()
	id := p.gateways()[0]
	paste, pasted := io.Pipe()
	defer pasted.Close()
	screen := &watched{seen: make(chan string, 1), last: "paste that address here.\n"}
	alongside(t, func() {
		address := addressIn(screen.next(t))
		if at, err := url.Parse(address); err != nil {
			t.Error(err)
		} else if resp, err := http.Get(at.Query().Get("redirect_uri") + "?state=" + strings.Repeat(`"`, 100<<10)); err != nil || resp.StatusCode != http.StatusNotFound {
			t.Errorf("a long address: %v, %v", resp, err)
		} else {
			resp.Body.Close()
		}
		right := redirected(t, address)
		pasted.Write([]byte("nonsense\n" + strings.Replace(right, "state=", "state=x", 1) + "\n" + right + "\n"))
	})
	status := run(t.Context(), []string{"login", "box", "--no-browser", "--gateway", id}, paste, io.Discard, screen, p.env)
	if text := screen.String(); status != 0 || !strings.Contains(text, "belongs to another sign-in") || !strings.Contains(text, "signed in to box") {
		t.Errorf("status %d: %s", status, text)
	}
	p.run(0, "enter the code ABCD-EFGH", "login", "box", "--device", "--gateway", id)
	p.run(exitAuth, "nobody signed in within 100ms", "login", "box", "--wait", "100ms", "--gateway", id)
}

// A publicGateway is one of a container: it listens behind a proxy with a path, and others control it with a token.
type publicGateway struct {
	url, token string
	call       func() string
}

// publicGateway starts a gateway of the person behind a proxy, until the test or stop ends it.
func (p *person) publicGateway(extra ...string) (g publicGateway, stop func()) {
	p.t.Helper()
	address := porttest.Free(p.t)
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	forward.ErrorLog = log.New(io.Discard, "", 0) // before the gateway starts, and after its end
	proxy := httptest.NewServer(http.StripPrefix("/team", forward))
	p.t.Cleanup(proxy.Close)
	tokens := filepath.Join(p.home, "control-tokens")
	p.run(0, "", "token", "new", "alice", "--file", tokens)
	g.url, g.token = proxy.URL+"/team/mcp", filepath.Join(p.t.TempDir(), "token")
	if err := os.WriteFile(g.token, p.out.Bytes(), 0o600); err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(p.t.Context())
	ended := make(chan int, 1)
	screen := &watched{seen: make(chan string, 1), last: "\x00"}
	args := append([]string{"serve", "--listen", address, "--public-url", g.url, "--control-tokens", tokens, "--no-auth"}, extra...)
	go func() { ended <- run(ctx, args, strings.NewReader(""), io.Discard, screen, p.env) }()
	stop = func() {
		cancel()
		if status := <-ended; status != 0 {
			p.t.Errorf("the gateway ends with %d: %s", status, screen.String())
		}
		ended <- 0
	}
	p.t.Cleanup(stop)
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if resp, err := http.Get(proxy.URL + "/team/healthz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(end) {
			p.t.Fatalf("the gateway does not start: %s", screen.String())
		}
	}
	g.call = func() string {
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		session, err := client.Connect(p.t.Context(), &mcp.StreamableClientTransport{Endpoint: g.url, DisableStandaloneSSE: true}, nil)
		if err != nil {
			p.t.Fatal(err)
		}
		defer session.Close()
		result, err := session.CallTool(p.t.Context(), &mcp.CallToolParams{Name: "execute_pipeline", Arguments: map[string]any{
			"pipeline": []any{map[string]any{"type": "tool", "server": "box", "name": "hello"}},
		}})
		if err != nil {
			p.t.Fatal(err)
		}
		return fmt.Sprint(result.Content[len(result.Content)-1].(*mcp.TextContent).Text)
	}
	return g, stop
}

// login runs mcsh login with a gateway. The browser opens the address and agrees to everything.
func (p *person) login(g publicGateway, browse func(address string)) (status int, text string) {
	p.t.Helper()
	screen := &watched{seen: make(chan string, 1), last: "\n\n"}
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	alongside(p.t, func() {
		done := false
		defer func() {
			if !done {
				cancel()
			}
		}()
		browse(addressIn(screen.next(p.t)))
		done = true
	})
	status = run(ctx, []string{"login", "box", "--gateway", g.url, "--gateway-token-file", g.token, "--no-browser"},
		strings.NewReader(""), io.Discard, screen, p.env)
	return status, screen.String()
}

// TestLoginPublic signs in at a real authorization server with a gateway that browsers reach at its public address, below a path.
// A gateway that was started again in the middle knows nothing of the sign-in.
func TestLoginPublic(t *testing.T) {
	h := newHosted(t, signintest.Options{TTL: 3600, Rotate: true})
	p := newPerson(t, `{"mcpServers": {"box": {"url": "`+h.URL+`/mcp"}}}`)
	g, stop := p.publicGateway()
	if text := g.call(); !strings.Contains(text, "mcsh login box") {
		t.Fatalf("before the sign-in: %s", text)
	}
	status, text := p.login(g, func(address string) {
		if want := strings.TrimSuffix(g.url, "/mcp") + "/oauth/start?login="; !strings.HasPrefix(address, want) {
			t.Errorf("the address is %s, want %s", address, want)
		}
		if _, page := signintest.Browser(t, address, ""); !strings.Contains(page, "You are signed in to box") {
			t.Errorf("the browser ends at %s", page)
		}
	})
	if status != 0 || !strings.Contains(text, "signed in to box") {
		t.Fatalf("status %d: %s", status, text)
	}
	if text := g.call(); !strings.Contains(text, "hello") {
		t.Errorf("after the sign-in: %s", text)
	}
	if resp, err := http.Get(strings.TrimSuffix(g.url, "/mcp") + "/oauth/callback?state=guess&code=x"); err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("a stranger: %v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
	var left string
	status, text = p.login(g, func(address string) {
		left, _ = signintest.Browser(t, address, strings.TrimSuffix(g.url, "/mcp")+"/oauth/callback")
		stop()
	})
	if status == 0 || left == "" {
		t.Errorf("the gateway has ended: status %d: %s", status, text)
	}
}

// TestLoginStolen: the browser that ends at the public address has to be the one that began there.
func TestLoginStolen(t *testing.T) {
	s := newAuthorizationServer(t)
	p := newPerson(t, `{"mcpServers": {"box": {"url": "`+s.URL+`/mcp"}}}`)
	g, stop := p.publicGateway()
	status, text := p.login(g, func(address string) {
		jarless := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		resp, err := jarless.PostForm(strings.SplitN(address, "?", 2)[0], url.Values{"login": {strings.SplitN(address, "login=", 2)[1]}})
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
		page, err := browse(resp.Header.Get("Location")) // the victim, who has not pressed the button
		if err != nil || !strings.Contains(page, "Nothing to do here") {
			t.Errorf("%v, %s", err, page)
		}
		if page, err := browse(address); err != nil || !strings.Contains(page, "Nothing to do here") {
			t.Errorf("another browser sees %v, %s", err, page)
		}
		stop() // else the command waits on
	})
	if status != exitUnreachable && status != exitFailed && status != exitAuth || strings.Contains(text, "signed in to") {
		t.Errorf("status %d: %s", status, text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given > 0 {
		t.Error("a code was used")
	}
}
