package ui

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/auth/tokens"
	"github.com/mcsh-dev/mcsh/control"
)

// fake is a gateway with one server and no runs.
type fake struct{}

func (fake) Servers(context.Context) []control.Server {
	return []control.Server{{Name: `<script>alert(1)</script>`, Status: "failed", Where: `"><img src=x>`}}
}

func (fake) Runs(context.Context, control.Viewer, control.RunFilter) control.RunList {
	return control.RunList{}
}
func (fake) Calls() []CallStep                  { return nil }
func (fake) System() SystemState                { return SystemState{} }
func (fake) Messages(context.Context) []Message { return nil }

// newTestConsole makes a console of it.
func newTestConsole(t *testing.T) *Console {
	t.Helper()
	c, err := New(Options{About: func() control.Gateway { return control.Gateway{ID: "abc", Started: time.Now()} }, Activity: fake{}, System: fake{}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// guardOf returns a guard with a token of each name.
func guardOf(t *testing.T, names ...string) (*auth.Guard, []string) {
	t.Helper()
	var file []byte
	var list []string
	for _, name := range names {
		token, entry, err := tokens.New(name, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		file, list = tokens.Add(file, entry), append(list, token)
	}
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := tokens.Open(path, tokens.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &auth.Guard{Verifiers: []auth.Verifier{f}}, list
}

func serve(h http.Handler, method, target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestPages: every page is whole, escapes what strangers write, and has the headers that protect it; so have refusals.
func TestPages(t *testing.T) {
	h := newTestConsole(t).Handler(Door{})
	for _, test := range []struct {
		target string
		status int
	}{{"/", 200}, {"/system", 200}, {"/nothing/here", 404}, {"/assets/style-0.css", 404}} {
		w := serve(h, "GET", test.target, "")
		if w.Code != test.status {
			t.Errorf("%s: status %d", test.target, w.Code)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q", test.target, name, got)
			}
		}
		body := w.Body.String()
		if strings.Contains(body, "<script>") || strings.Contains(body, "<img src=x") || strings.Contains(body, " style=") || strings.Contains(body, " onclick=") {
			t.Errorf("%s has what the policy forbids:\n%s", test.target, body)
		}
	}
}

// TestFragment: a request of htmx gets the part that is its target, or all.
func TestFragment(t *testing.T) {
	h := newTestConsole(t).Handler(Door{})
	for target, part := range map[string]bool{"start-runs": true, "nothing": false, "": false} {
		body := serve(h, "GET", "/", "", "HX-Request", "true", "HX-Target", target).Body.String()
		if got := !strings.Contains(body, "<html"); got != part {
			t.Errorf("target %q: got a part: %t", target, got)
		}
	}
}

// TestActs: a form needs its token and its origin, and has a bound; an error is a note beside the page.
func TestActs(t *testing.T) {
	c := newTestConsole(t)
	done := 0
	c.pages[0].acts = []act{{"do", func(v *Visit) (any, error) {
		done++
		if v.FormValue("fail") != "" {
			return nil, errors.New("<b>no</b>")
		}
		return showStart(v)
	}}}
	h := c.Handler(Door{})
	token := (&Visit{console: c}).token()
	for _, test := range []struct {
		name, body string
		header     []string
		status     int
		done       bool
		text       string
	}{
		{"with the token", "", []string{tokenHeader, token}, 200, true, "Overview"},
		{"with the token as a field", tokenField + "=" + token, nil, 200, true, ""},
		{"without a token", "a=b", nil, 403, false, "too old"},
		{"with a wrong token", "", []string{tokenHeader, token + "x"}, 403, false, ""},
		{"of another origin", "", []string{tokenHeader, token, "Origin", "https://evil.example"}, 403, false, ""},
		{"of another site", "", []string{tokenHeader, token, "Sec-Fetch-Site", "cross-site"}, 403, false, ""},
		{"that is too long", "a=" + strings.Repeat("x", maxForm), []string{tokenHeader, token}, 413, false, "at most 4 MiB"},
		{"that fails", "fail=1", []string{tokenHeader, token, "HX-Request", "true"}, 500, true, "&lt;b&gt;no&lt;/b&gt;"},
	} {
		done = 0
		w := serve(h, "POST", "/do", test.body, test.header...)
		if w.Code != test.status || (done == 1) != test.done || !strings.Contains(w.Body.String(), test.text) {
			t.Errorf("a form %s: status %d, done %d times, %.300s", test.name, w.Code, done, w.Body)
		}
	}
	if w := serve(h, "GET", "/do", ""); w.Code != 404 {
		t.Errorf("GET of an act: %d", w.Code)
	}
}

func signInForm(c *Console, token string) string {
	return url.Values{"token": {token}, tokenField: {(&Visit{console: c}).token()}}.Encode()
}

// enterWith returns the cookie of a sign-in.
func enterWith(t *testing.T, c *Console, h http.Handler, token string) string {
	t.Helper()
	w := serve(h, "POST", "/signin", signInForm(c, token))
	if w.Code != http.StatusSeeOther {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return strings.Split(w.Header().Get("Set-Cookie"), ";")[0]
}

// TestSignInBounds: sessions of one person and of all have a bound, and the newest stay.
func TestSignInBounds(t *testing.T) {
	c := newTestConsole(t)
	guard, list := guardOf(t, "alice", "bob")
	h := c.Handler(Door{Guard: guard})
	form := func(token string) string { return signInForm(c, token) }
	cookie := func(token string) string { return enterWith(t, c, h, token) }
	in := func(cookie string) bool { return serve(h, "GET", "/", "", "Cookie", cookie).Code == 200 }
	bob, first := cookie(list[1]), cookie(list[0])
	for range maxPersonSessions - 1 {
		cookie(list[0])
	}
	if !in(first) {
		t.Error("a session has ended too early")
	}
	last := cookie(list[0])
	if in(first) || !in(last) || !in(bob) {
		t.Errorf("beyond the bound of a person: first %t, last %t, of another %t", in(first), in(last), in(bob))
	}
	all := func(session) bool { return true }
	for i := range maxSessions + 50 {
		c.sessions.add(session{"", strconv.Itoa(i)}, bound[session]{maxSessions, all})
	}
	if n := len(c.sessions.all); n != maxSessions {
		t.Errorf("there are %d sessions", n)
	}
	for _, token := range []string{"", "mcsh_x", strings.Repeat("x", auth.MaxToken+1)} {
		if w := serve(h, "POST", "/signin", form(token)); w.Code != http.StatusUnauthorized || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("a token of %d bytes: status %d", len(token), w.Code)
		}
	}
	if w := serve(h, "GET", "/", "", "Cookie", "mcsh-session-0=x"); w.Code != http.StatusUnauthorized {
		t.Errorf("a cookie of nobody: %d", w.Code)
	}
	if w := serve(h, "POST", "/signin", "token="+list[0]); w.Code != http.StatusForbidden {
		t.Errorf("a sign-in without the token of its form: %d", w.Code)
	}
}

// budget is a memory with so many free bytes.
type budget struct{ free int64 }

func (b *budget) Try(n int64) bool {
	fits := n <= b.free
	if fits {
		b.free -= n
	}
	return fits
}
func (b *budget) Give(n int64) { b.free += n }

// TestSignInMemory: sign-ins take memory of the budget, are refused without, and give it back.
func TestSignInMemory(t *testing.T) {
	const room = 10 * (entryCost + 1000)
	b := &budget{room}
	sessions := newTable(b, func(s session) int { return len(s.token) })
	one := session{strings.Repeat("x", 1000), "alice"}
	var words []string
	for range 10 {
		word, fits := sessions.add(one)
		if !fits {
			t.Fatalf("%d sign-ins have no room", len(words))
		}
		words = append(words, word)
	}
	if _, fits := sessions.add(one); fits || b.free != 0 {
		t.Errorf("one without room fits: %t, %d bytes are free", fits, b.free)
	}
	if _, fits := sessions.add(one, bound[session]{10, func(session) bool { return true }}); !fits {
		t.Error("one in place of the oldest does not fit")
	}
	for _, word := range append(words, words...) {
		sessions.remove(word)
	}
	if b.free != room-(entryCost+1000) {
		t.Errorf("%d of %d bytes are free beside the last one", b.free, room)
	}
	c := newTestConsole(t)
	guard, list := guardOf(t, "alice")
	c.sessions.memory = &budget{}
	h := c.Handler(Door{Guard: guard})
	w := serve(h, "POST", "/signin", signInForm(c, list[0]))
	if w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "no memory") || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("a sign-in without room: status %d, %v, %s", w.Code, w.Header(), w.Body)
	}
}

// TestOwnPath: after a sign-in nobody is led out of the console.
func TestOwnPath(t *testing.T) {
	for next, want := range map[string]string{
		"": "", "system": "system", "runs/q_1?x=1": "runs/q_1?x=1", "//evil.example": "", "/x": "", "https://evil.example": "", `\\evil.example`: "",
		"javascript:alert(1)": "", "data:x": "", "a\nb": "", "../x": "../x",
		strings.Repeat("x", maxNext+1): "",
	} {
		if got := ownPath(next); got != want {
			t.Errorf("%q: got %q, want %q", next, got, want)
		}
	}
}

// TestStreams: a stream tells of its topics once, however often they change while nobody reads, and streams have bounds.
func TestStreams(t *testing.T) {
	c := newTestConsole(t)
	s, refused := c.hub.open("alice", []string{"runs", "servers"})
	if refused != nil {
		t.Fatal(refused)
	}
	for range 100_000 {
		c.Changed("runs")
		c.Changed("others")
	}
	if got := strings.Join(c.hub.take(s), " "); got != "runs" || len(c.hub.take(s)) > 0 {
		t.Errorf("got %q", got)
	}
	for range maxPersonStreams - 1 {
		if _, refused := c.hub.open("alice", nil); refused != nil {
			t.Fatal(refused)
		}
	}
	if _, refused := c.hub.open("alice", nil); refused == nil || refused.Status != http.StatusTooManyRequests {
		t.Errorf("a stream too many of one person: %v", refused)
	}
	h := c.Handler(Door{})
	for _, query := range []string{strings.Repeat("topic=x&", maxTopics+1), "topic=" + strings.Repeat("x", maxTopic+1)} {
		if w := serve(h, "GET", "/events?"+query, ""); w.Code != http.StatusBadRequest {
			t.Errorf("%.20s: status %d", query, w.Code)
		}
	}
}

// TestEvents: a stream begins with the instance, and ends with its browser.
func TestEvents(t *testing.T) {
	c := newTestConsole(t)
	server := httptest.NewServer(c.Handler(Door{}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", server.URL+"/events?topic=runs", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	read := make([]byte, 1<<10)
	var all string
	for !strings.Contains(all, `data: ["runs"]`) {
		if strings.Contains(all, "hello") {
			c.Changed("runs")
		}
		n, err := res.Body.Read(read)
		if err != nil {
			t.Fatalf("%v after %q", err, all)
		}
		all += string(read[:n])
	}
	if !strings.HasPrefix(all, "event: hello\ndata: "+strconv.Quote(c.hub.instance)+"\n\n") {
		t.Errorf("got %q", all)
	}
	cancel()
	res.Body.Close()
	for ended := false; !ended; time.Sleep(time.Millisecond) {
		c.hub.mu.Lock()
		ended = len(c.hub.streams) == 0
		c.hub.mu.Unlock()
	}
}

// TestAssets: browsers keep assets, which are small before the editor is opened.
func TestAssets(t *testing.T) {
	c := newTestConsole(t)
	h := c.Handler(Door{})
	sum := 0
	for name, a := range c.assets {
		w := serve(h, "GET", "/"+a.address(), "", "Accept-Encoding", "gzip, br")
		if w.Code != 200 || w.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" || w.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %d, %v", name, w.Code, w.Header())
		}
		if name != "editor.js" && name != "licences.txt" {
			sum += w.Body.Len()
		}
		plain, _ := io.ReadAll(serve(h, "GET", "/"+a.address(), "").Body)
		if string(plain) != string(a.plain) {
			t.Errorf("%s without compression has %d bytes", name, len(plain))
		}
	}
	if sum > 100<<10 {
		t.Errorf("before the editor is opened a browser loads up to %d bytes", sum)
	}
}

// TestMenu: each page has templates that can be parsed and a key of its own, and nobody sees those of operators but they.
func TestMenu(t *testing.T) {
	keys := map[string]string{}
	for _, p := range pages() {
		if other, taken := keys[p.keys]; taken && p.keys != "" {
			t.Errorf("the key %s leads to %s and to %s", p.keys, other, p.title)
		}
		keys[p.keys] = p.title
		if p.parse(nil); !p.has("main") {
			_, err := p.templates()
			t.Errorf("the page %s has no template main: %v", p.title, err)
		}
	}
	c, err := New(Options{About: func() control.Gateway { return control.Gateway{} }, Activity: fake{}, Protocol: fake{}})
	if err != nil {
		t.Fatal(err)
	}
	guard, list := guardOf(t, "alice")
	for _, test := range []struct {
		door   Door
		header []string
		status int
	}{
		{Door{}, nil, http.StatusOK},
		{Door{Guard: guard}, []string{"Cookie", enterWith(t, c, c.Handler(Door{Guard: guard}), list[0])}, http.StatusForbidden},
	} {
		h := c.Handler(test.door)
		if w := serve(h, "GET", "/", "", test.header...); w.Code != 200 || strings.Contains(w.Body.String(), "Protocol") != (test.status == 200) {
			t.Errorf("the menu of the overview, status %d:\n%s", w.Code, w.Body)
		}
		if w := serve(h, "GET", "/protocol", "", test.header...); w.Code != test.status {
			t.Errorf("the page of operators: status %d, want %d", w.Code, test.status)
		}
	}
}
