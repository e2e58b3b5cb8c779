package signin_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// A fake is an MCP server and its authorization server on one address.
type fake struct {
	*httptest.Server
	mu    sync.Mutex
	pages map[string]http.HandlerFunc // by path
	asked map[string]int
}

const (
	resourcePage = "/.well-known/oauth-protected-resource/mcp"
	rootPage     = "/.well-known/oauth-protected-resource"
	issuerPage   = "/.well-known/oauth-authorization-server"
	parentPage   = `{"resource":"$URL","authorization_servers":["$URL"]}`
)

// newFake starts a fake whose pages are right.
func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{asked: map[string]int{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	f.pages = map[string]http.HandlerFunc{
		"/mcp": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+f.URL+resourcePage+`"`)
			w.WriteHeader(http.StatusUnauthorized)
		},
		resourcePage: f.json(`{"resource":"$URL/mcp","authorization_servers":["$URL"]}`),
		issuerPage:   f.issuer(""),
		"/reg":       f.json(`{"client_id":"c"}`),
		"/token":     f.json(`{"access_token":"token-of-access","token_type":"Bearer"}`),
	}
	return f
}

// ServeHTTP implements [http.Handler].
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	page := f.pages[r.URL.Path]
	f.asked[r.URL.Path]++
	f.mu.Unlock()
	if page == nil {
		http.NotFound(w, r)
		return
	}
	page(w, r)
}

func (f *fake) set(path string, page http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pages[path] = page
}

func (f *fake) count(path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[path]
}

// json answers with a text, in which $URL is the address.
func (f *fake) json(text string) http.HandlerFunc {
	return f.status(http.StatusOK, text)
}

func (f *fake) status(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, strings.ReplaceAll(text, "$URL", f.URL))
	}
}

// issuer answers with metadata, whose members are those of the argument or else right.
func (f *fake) issuer(members string) http.HandlerFunc {
	if members != "" {
		members = "," + members
	}
	return f.json(`{"issuer":"$URL","authorization_endpoint":"$URL/auth","token_endpoint":"$URL/token","registration_endpoint":"$URL/reg",
		"device_authorization_endpoint":"$URL/device","revocation_endpoint":"$URL/revoke","code_challenge_methods_supported":["S256"]` + members + `}`)
}

func (f *fake) server() signin.Server {
	return signin.Server{Name: "hosted", URL: f.URL + "/mcp", HTTP: signin.NewHTTP(signin.Options{Server: f.URL})}
}

func redirectTo(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusTemporaryRedirect) }
}

// endless answers without an end, as fast as it is read, or with a byte now and then.
func endless(pause time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for r.Context().Err() == nil {
			piece := strings.Repeat(" ", 64<<10)
			if pause > 0 {
				piece = " "
			}
			if _, err := fmt.Fprint(w, piece); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-time.After(pause):
			case <-r.Context().Done():
			}
		}
	}
}

// TestHostileMetadata: metadata that would send a person or a secret elsewhere, or that never ends, is refused.
func TestHostileMetadata(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		page string
		by   func(f *fake) http.HandlerFunc
		want string // in the error
	}{
		"another resource":   {resourcePage, jsonOf(`{"resource":"https://bank.example/mcp","authorization_servers":["$URL"]}`), "another resource"},
		"sibling resource":   {resourcePage, jsonOf(`{"resource":"$URL/mcp2","authorization_servers":["$URL"]}`), "another resource"},
		"half a segment":     {resourcePage, jsonOf(`{"resource":"$URL/mc","authorization_servers":["$URL"]}`), "another resource"},
		"no resource":        {resourcePage, jsonOf(`{"authorization_servers":["$URL"]}`), "another resource"},
		"resource with user": {resourcePage, jsonOf(`{"resource":"http://me@127.0.0.1/mcp","authorization_servers":["$URL"]}`), "another resource"},
		"whole host":         {resourcePage, jsonOf(`{"resource":"$URL","authorization_servers":["$URL"]}`), "does not say so itself"},
		"no servers":         {resourcePage, jsonOf(`{"resource":"$URL/mcp"}`), "names no authorization server"},
		"http server":        {resourcePage, jsonOf(`{"resource":"$URL/mcp","authorization_servers":["http://issuer.example"]}`), "not https"},
		"link-local server":  {resourcePage, jsonOf(`{"resource":"$URL/mcp","authorization_servers":["https://169.254.169.254"]}`), "link-local"},
		"script as server":   {resourcePage, jsonOf(`{"resource":"$URL/mcp","authorization_servers":["javascript:alert(1)"]}`), "begins with https"},
		"wrong types":        {resourcePage, jsonOf(`{"resource":7}`), "not as the specification"},
		"deep":               {resourcePage, jsonOf(strings.Repeat(`{"a":`, 100_000)), "not as the specification"},
		"cut":                {resourcePage, jsonOf(`{"resource":"$URL/mcp"`), "not as the specification"},
		"huge":               {resourcePage, jsonOf(`{"resource":"` + strings.Repeat("x", 1<<20) + `"}`), "larger than"},
		"endless":            {resourcePage, func(*fake) http.HandlerFunc { return endless(0) }, "larger than"},
		"failing":            {resourcePage, func(f *fake) http.HandlerFunc { return f.status(500, "{}") }, "500"},
		"loop":               {resourcePage, func(*fake) http.HandlerFunc { return redirectTo(resourcePage) }, "redirects"},
		"redirect to http":   {resourcePage, func(*fake) http.HandlerFunc { return redirectTo("http://evil.example/") }, "not https"},
		"redirect inside":    {resourcePage, func(*fake) http.HandlerFunc { return redirectTo("https://169.254.169.254/latest") }, "link-local"},
		"redirect to a file": {resourcePage, func(*fake) http.HandlerFunc { return redirectTo("file:///etc/passwd") }, "https"},
		"foreign issuer":     {issuerPage, issuerOf(`"issuer":"https://accounts.example"`), "another issuer"},
		"issuer's case":      {issuerPage, issuerOf(`"issuer":"HTTP://127.0.0.1"`), "another issuer"},
		"no PKCE":            {issuerPage, issuerOf(`"code_challenge_methods_supported":null`), "PKCE"},
		"plain PKCE":         {issuerPage, issuerOf(`"code_challenge_methods_supported":["plain"]`), "PKCE"},
		"http tokens":        {issuerPage, issuerOf(`"token_endpoint":"http://evil.example/token"`), "token_endpoint"},
		"no tokens":          {issuerPage, issuerOf(`"token_endpoint":""`), "token_endpoint"},
		"link-local tokens":  {issuerPage, issuerOf(`"token_endpoint":"https://169.254.169.254/token"`), "link-local"},
		"script for people":  {issuerPage, issuerOf(`"authorization_endpoint":"javascript:alert(1)"`), "authorization_endpoint"},
		"user in an address": {issuerPage, issuerOf(`"registration_endpoint":"https://bank.example@evil.example/"`), "registration_endpoint"},
		"http device":        {issuerPage, issuerOf(`"device_authorization_endpoint":"http://evil.example"`), "device_authorization_endpoint"},
		"a page for all":     {issuerPage, func(*fake) http.HandlerFunc { return pageForAll }, "no metadata"},
		"endless issuer":     {issuerPage, func(*fake) http.HandlerFunc { return endless(0) }, "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.set(c.page, c.by(f))
			_, err := signin.Discover(t.Context(), f.server(), "")
			wantError(t, err, c.want)
		})
	}
}

func jsonOf(text string) func(*fake) http.HandlerFunc {
	return func(f *fake) http.HandlerFunc { return f.json(text) }
}

func issuerOf(members string) func(*fake) http.HandlerFunc {
	return func(f *fake) http.HandlerFunc { return f.issuer(members) }
}

func pageForAll(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error with %q", err, want)
	} else if len(err.Error()) > 2000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

// TestSlowMetadata: a document that never arrives ends at the time limit of one request.
func TestSlowMetadata(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.set(resourcePage, endless(10*time.Millisecond))
	s := f.server()
	if s.HTTP.Timeout <= 0 || s.HTTP.Timeout > 30*time.Second {
		t.Errorf("a request may take %v, want 30 s", s.HTTP.Timeout)
	}
	s.HTTP.Timeout = 200 * time.Millisecond
	_, err := signin.Discover(t.Context(), s, "")
	wantError(t, err, "no whole answer in time")
}

// TestCancelledDiscovery ends at once.
func TestCancelledDiscovery(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.set(issuerPage, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	_, err := signin.Discover(ctx, f.server(), "")
	wantError(t, err, "canceled")
}

// TestManyIssuers: only some of the authorization servers that a resource names are asked, and the first that works is chosen.
func TestManyIssuers(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.NotFound(w, r)
	}))
	defer other.Close()
	bad := `"` + other.URL + `",`
	f.set(resourcePage, f.json(`{"resource":"$URL/mcp","authorization_servers":[`+bad+bad+`"$URL"]}`))
	target, err := signin.Discover(t.Context(), f.server(), "")
	if err != nil || target.Issuer != f.URL {
		t.Errorf("got %v (%v), want the third issuer", target, err)
	}
	asked.Store(0)
	f.set(resourcePage, f.json(`{"resource":"$URL/mcp","authorization_servers":[`+strings.Repeat(bad, 5000)+`"$URL"]}`))
	if _, err := signin.Discover(t.Context(), f.server(), ""); err == nil || asked.Load() > 50 {
		t.Errorf("5000 issuers: %d requests, %v", asked.Load(), err)
	}
}

// TestFindsMetadata: the places of metadata, in the order of the specification, and what they lead to.
func TestFindsMetadata(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pages  map[string]string // instead of those of a fake; empty: not there
		change func(*signin.Server)
		want   [2]string // issuer and resource, after the address
		err    string
	}{
		"challenge":           {want: [2]string{"", "/mcp"}},
		"well-known path":     {pages: map[string]string{"/mcp": "401"}, want: [2]string{"", "/mcp"}},
		"well-known root":     {pages: map[string]string{"/mcp": "401", resourcePage: "", rootPage: parentPage}},
		"parent":              {pages: map[string]string{resourcePage: parentPage, rootPage: parentPage}},
		"parent in a refusal": {pages: map[string]string{"/mcp": "401 root", resourcePage: "", rootPage: parentPage}},
		"tenant of a host":    {pages: map[string]string{resourcePage: parentPage, rootPage: `{"resource":"$URL/mcp","authorization_servers":["$URL"]}`}, err: "does not say so itself"},
		"tenant's page":       {pages: map[string]string{"/mcp": "401 tenant", "/tenant": parentPage}, err: "does not say so itself"},
		"OpenID":              {pages: map[string]string{issuerPage: "", "/.well-known/openid-configuration": "issuer"}, want: [2]string{"", "/mcp"}},
		"path inserted":       {pages: tenant("/.well-known/oauth-authorization-server/tenant"), want: [2]string{"/tenant", "/mcp"}},
		"OpenID inserted":     {pages: tenant("/.well-known/openid-configuration/tenant"), want: [2]string{"/tenant", "/mcp"}},
		"OpenID appended":     {pages: tenant("/tenant/.well-known/openid-configuration"), want: [2]string{"/tenant", "/mcp"}},
		"2025-03-26":          {pages: map[string]string{"/mcp": "401", resourcePage: ""}, want: [2]string{"", "/mcp"}},
		"2025-03-26, bare":    {pages: map[string]string{"/mcp": "401", resourcePage: "", issuerPage: ""}, want: [2]string{"", "/mcp"}},
		"no sign-in":          {pages: map[string]string{"/mcp": "{}", resourcePage: "", issuerPage: ""}, err: "asks for no sign-in"},
		"issuer of no one":    {pages: map[string]string{issuerPage: ""}, err: "no metadata"},
		"configured issuer":   {change: func(s *signin.Server) { s.Issuer = "https://other.example" }, err: "does not name the configured issuer"},
		"configured address":  {pages: map[string]string{resourcePage: "", "/meta": "issuer"}, change: func(s *signin.Server) { s.MetadataURL = strings.Replace(s.URL, "/mcp", "/meta", 1) }, want: [2]string{"", "/mcp"}},
		"configured other":    {pages: map[string]string{"/meta": `{"issuer":"https://accounts.example"}`}, change: func(s *signin.Server) { s.MetadataURL = strings.Replace(s.URL, "/mcp", "/meta", 1) }, err: "another issuer"},
		"no https":            {change: func(s *signin.Server) { s.URL = "http://mcp.example/mcp" }, err: "not https"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			for path, text := range c.pages {
				f.set(path, f.page(text))
			}
			s := f.server()
			if c.change != nil {
				c.change(&s)
			}
			target, err := signin.Discover(t.Context(), s, "")
			if c.err != "" {
				wantError(t, err, c.err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([2]string{f.URL + c.want[0], f.URL + c.want[1]}, [2]string{target.Issuer, target.Resource}); diff != "" {
				t.Errorf("issuer and resource (-want +got):\n%s", diff)
			}
		})
	}
}

// page reads an entry of TestFindsMetadata.
func (f *fake) page(text string) http.HandlerFunc {
	switch text {
	case "":
		return http.NotFound
	case "401":
		return f.status(http.StatusUnauthorized, "")
	case "401 root", "401 tenant":
		at := map[string]string{"401 root": rootPage, "401 tenant": "/tenant"}[text]
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+f.URL+at+`"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	case "issuer":
		return f.issuer("")
	case "tenant":
		return f.issuer(`"issuer":"$URL/tenant"`)
	}
	return f.json(text)
}

// tenant is an issuer with a path, whose metadata is at one place only.
func tenant(at string) map[string]string {
	return map[string]string{
		resourcePage: `{"resource":"$URL/mcp","authorization_servers":["$URL/tenant"]}`, issuerPage: "", at: "tenant",
	}
}

// TestHostileReturn: hostile addresses that the browser may be sent to.
func TestHostileReturn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		query    string // $STATE, $URL
		metadata string
		want     string
	}{
		"right":             {query: "code=c-o-d-e&state=$STATE"},
		"right issuer":      {query: "code=c-o-d-e&state=$STATE&iss=$URL"},
		"no state":          {query: "code=c-o-d-e", want: "another one"},
		"other state":       {query: "code=c-o-d-e&state=abc", want: "another one"},
		"part of the state": {query: "code=c-o-d-e&state=$STATEx", want: "another one"},
		"two states":        {query: "code=c-o-d-e&state=abc&state=$STATE", want: "twice"},
		"two codes":         {query: "code=a&code=b&state=$STATE", want: "twice"},
		"other issuer":      {query: "code=c-o-d-e&state=$STATE&iss=https://evil.example", want: "another issuer"},
		"empty issuer":      {query: "code=c-o-d-e&state=$STATE&iss=", want: "another issuer"},
		"issuer with slash": {query: "code=c-o-d-e&state=$STATE&iss=$URL/", want: "another issuer"},
		"issuer missing":    {query: "code=c-o-d-e&state=$STATE", metadata: `"authorization_response_iss_parameter_supported":true`, want: "does not name its issuer"},
		"refused":           {query: "error=access_denied&error_description=No+way%0Aat+all&state=$STATE", want: "access_denied: No way at all"},
		"forged refusal":    {query: "error=access_denied&state=x", want: "another one"},
		"refused elsewhere": {query: "error=access_denied&state=$STATE&iss=https://evil.example", want: "another issuer"},
		"nothing":           {query: "state=$STATE", want: "no code"},
		"broken":            {query: "state=%zz", want: "malformed"},
		"endless":           {query: "state=$STATE&code=" + strings.Repeat("x", 1<<20), want: "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.set(issuerPage, f.issuer(c.metadata))
			attempt := begin(t, f)
			query := strings.NewReplacer("$STATE", attempt.State, "$URL", url.QueryEscape(f.URL)).Replace(c.query)
			// A refusal is an answer, too.
			if answers := attempt.Answers(callback + "?" + query); answers != (c.want == "" || strings.HasPrefix(c.want, "access_denied")) {
				t.Errorf("it is an answer: %v", answers)
			}
			login, err := attempt.Finish(t.Context(), callback+"?"+query)
			if c.want == "" {
				if err != nil || login.AccessToken != "token-of-access" {
					t.Errorf("got %v, want a login", err)
				}
				return
			}
			wantError(t, err, c.want)
			if f.count("/token") > 0 {
				t.Error("the code was sent")
			}
			if strings.Contains(err.Error(), attempt.State) || strings.Contains(err.Error(), "c-o-d-e") {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}

// TestRevokeElsewhere: a login that was kept is revoked only where its issuer says now, and only at the configured issuer.
func TestRevokeElsewhere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		metadata         string
		configured, want string // the issuer; $URL
	}{
		"right":              {metadata: `"revocation_endpoint":"$URL/revoke"`},
		"right, configured":  {metadata: `"revocation_endpoint":"$URL/revoke"`, configured: "$URL"},
		"no longer":          {metadata: `"revocation_endpoint":""`, want: signin.ErrNoRevocation.Error()},
		"another issuer":     {metadata: `"revocation_endpoint":"$URL/revoke"`, configured: "https://issuer.example", want: "another issuer"},
		"metadata of others": {metadata: `"issuer":"https://evil.example","revocation_endpoint":"$URL/revoke"`, want: "another issuer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.set(issuerPage, f.issuer(c.metadata))
			f.set("/revoke", f.json("{}"))
			server := f.server()
			server.Issuer = strings.Replace(c.configured, "$URL", f.URL, 1)
			err := server.Revoke(t.Context(), logins.Login{
				Key: logins.Key{Issuer: f.URL}, AccessToken: "a", RevocationEndpoint: f.URL + "/of-the-file", TokenEndpoint: f.URL + "/of-the-file",
			})
			if c.want == "" && (err != nil || f.count("/revoke") != 1) || f.count("/of-the-file") > 0 {
				t.Errorf("%v, %d requests to the issuer, %d elsewhere", err, f.count("/revoke"), f.count("/of-the-file"))
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || f.count("/revoke") > 0) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func begin(t *testing.T, f *fake) *signin.Attempt {
	t.Helper()
	target, err := signin.Discover(t.Context(), f.server(), "")
	if err != nil {
		t.Fatal(err)
	}
	attempt, err := target.Begin(t.Context(), callback)
	if err != nil {
		t.Fatal(err)
	}
	return attempt
}

// TestMixUp: people hear of an issuer that sends them and the code to two hosts, and whose answers do not name it.
func TestMixUp(t *testing.T) {
	t.Parallel()
	const elsewhere = `"authorization_endpoint":"https://accounts.example/auth"`
	for name, c := range map[string]struct {
		metadata string
		change   func(*signin.Server)
		warns    bool
	}{
		"one host":          {},
		"two hosts":         {metadata: elsewhere, warns: true},
		"names itself":      {metadata: elsewhere + `,"authorization_response_iss_parameter_supported":true`},
		"configured issuer": {metadata: elsewhere, change: func(s *signin.Server) { s.Issuer = rootOf(s) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.set(issuerPage, f.issuer(c.metadata))
			s := f.server()
			if c.change != nil {
				c.change(&s)
			}
			target, err := signin.Discover(t.Context(), s, "")
			if err != nil {
				t.Fatal(err)
			}
			warning := target.Warning()
			if (warning != "") != c.warns || c.warns && (!strings.Contains(warning, "https://accounts.example") || !strings.Contains(warning, f.URL)) {
				t.Errorf("the warning is %q, want one: %t", warning, c.warns)
			}
		})
	}
}

// TestAttempt: a wrong address leaves an attempt as it is, a code is used once, and each attempt has secrets of its own.
func TestAttempt(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	one, other := begin(t, f), begin(t, f)
	if one.State == other.State || len(one.State) < 43 {
		t.Errorf("the states %q and %q are not 256 bits of their own", one.State, other.State)
	}
	at, err := url.Parse(one.URL)
	if err != nil {
		t.Fatal(err)
	}
	q := at.Query()
	q.Del("state")
	if len(q.Get("code_challenge")) != 43 {
		t.Errorf("the challenge is %q", q.Get("code_challenge"))
	}
	q.Del("code_challenge")
	if diff := cmp.Diff(url.Values{
		"response_type": {"code"}, "client_id": {"c"}, "redirect_uri": {callback}, "resource": {f.URL + "/mcp"}, "code_challenge_method": {"S256"},
	}, q); diff != "" {
		t.Errorf("what the browser opens (-want +got):\n%s", diff)
	}
	if _, err := one.Finish(t.Context(), callback+"?code=x&state="+other.State); err == nil {
		t.Error("the state of another attempt is accepted")
	}
	right := callback + "?code=x&state=" + one.State
	if _, err := one.Finish(t.Context(), right); err != nil {
		t.Errorf("after a wrong address: %v", err)
	}
	_, err = one.Finish(t.Context(), right)
	wantError(t, err, "has ended")
}

// TestHostileTokens: answers of a token endpoint.
func TestHostileTokens(t *testing.T) {
	t.Parallel()
	stolen := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the code went to another host") }))
	defer stolen.Close()
	for name, c := range map[string]struct {
		by   func(f *fake) http.HandlerFunc
		want string
	}{
		"redirect":       {func(*fake) http.HandlerFunc { return redirectTo(stolen.URL) }, "307"},
		"no token":       {jsonOf(`{"token_type":"Bearer"}`), "no token"},
		"another type":   {jsonOf(`{"access_token":"abc","token_type":"DPoP"}`), "another type"},
		"no type":        {jsonOf(`{"access_token":"abc"}`), "another type"},
		"line break":     {jsonOf(`{"access_token":"abc\r\nX-Evil: 1","token_type":"Bearer"}`), "no token"},
		"long":           {jsonOf(`{"access_token":"` + strings.Repeat("x", 100_000) + `","token_type":"Bearer"}`), "no token"},
		"long refresh":   {jsonOf(`{"access_token":"abc","token_type":"Bearer","refresh_token":"` + strings.Repeat("x", 100_000) + `"}`), "no token"},
		"no JSON":        {func(*fake) http.HandlerFunc { return pageForAll }, "no token"},
		"deep":           {jsonOf(strings.Repeat("[", 100_000)), "no token"},
		"error with 200": {jsonOf(`{"error":"access_denied","error_description":"c-o-d-e"}`), "access_denied"},
		"repeats secret": {func(f *fake) http.HandlerFunc {
			return f.status(400, `{"error":"invalid_grant","error_description":"the code c-o-d-e is used up"}`)
		}, "invalid_grant"},
		"endless": {func(*fake) http.HandlerFunc { return endless(0) }, "larger than"},
		"page":    {func(f *fake) http.HandlerFunc { return f.status(502, "c-o-d-e") }, "502"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			attempt := begin(t, f)
			f.set("/token", c.by(f))
			login, err := attempt.Finish(t.Context(), callback+"?code=c-o-d-e&state="+attempt.State)
			wantError(t, err, c.want)
			if err != nil && strings.Contains(err.Error(), "c-o-d-e") || login.AccessToken != "" {
				t.Errorf("the error or the login shows a secret: %v", err)
			}
		})
	}
}

// TestRegistration: which client is used, and answers of a registration.
func TestRegistration(t *testing.T) {
	t.Parallel()
	const document = "https://mcsh.example/client.json"
	for name, c := range map[string]struct {
		metadata, answer string
		change           func(*signin.Server)
		id, err          string
	}{
		"registers":           {id: "c"},
		"configured first":    {change: func(s *signin.Server) { s.ClientID, s.ClientMetadataURL = "mine", document }, metadata: `"client_id_metadata_document_supported":true`, id: "mine"},
		"document":            {change: func(s *signin.Server) { s.ClientMetadataURL = document }, metadata: `"client_id_metadata_document_supported":true`, id: document},
		"unknown document":    {change: func(s *signin.Server) { s.ClientMetadataURL = document }, id: "c"},
		"secret for anybody":  {change: func(s *signin.Server) { s.ClientID, s.ClientSecret = "mine", "s3cret" }, err: "set oauth.authServerMetadataUrl"},
		"secret for one":      {change: func(s *signin.Server) { s.ClientID, s.ClientSecret, s.Issuer = "mine", "s3cret", rootOf(s) }, id: "mine"},
		"no way":              {metadata: `"registration_endpoint":""`, err: "set oauth.clientId"},
		"no id":               {answer: `{}`, err: "not as the specification"},
		"wrong type":          {answer: `{"client_id":7}`, err: "not as the specification"},
		"unknown method":      {answer: `{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"private_key_jwt"}`, err: "not supported"},
		"very long id":        {answer: `{"client_id":"` + strings.Repeat("x", 10_000) + `"}`, err: "not as the specification"},
		"secret without rule": {answer: `{"client_id":"c","client_secret":"s"}`, id: "c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.set(issuerPage, f.issuer(c.metadata))
			if c.answer != "" {
				f.set("/reg", f.json(c.answer))
			}
			s := f.server()
			if c.change != nil {
				c.change(&s)
			}
			target, err := signin.Discover(t.Context(), s, "")
			if err != nil {
				t.Fatal(err)
			}
			attempt, err := target.Begin(t.Context(), callback)
			if c.err != "" {
				wantError(t, err, c.err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			at, err := url.Parse(attempt.URL)
			if err != nil || at.Query().Get("client_id") != c.id {
				t.Errorf("the client is %q (%v), want %q", at.Query().Get("client_id"), err, c.id)
			}
			if want := map[bool]int{true: 1}[c.id == "c"]; f.count("/reg") != want {
				t.Errorf("%d registrations, want %d", f.count("/reg"), want)
			}
		})
	}
}

// rootOf is the address of the fake that a server belongs to.
func rootOf(s *signin.Server) string { return strings.TrimSuffix(s.URL, "/mcp") }

// TestRefreshKeeps: an answer without a new refresh token, or without scopes, keeps those of before.
func TestRefreshKeeps(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	var form url.Values
	old := logins.Login{
		Key:         logins.Key{Server: "hosted", Resource: f.URL + "/mcp", Issuer: f.URL},
		AccessToken: "access-1", RefreshToken: "refresh-1", Scopes: []string{"read"}, TokenEndpoint: f.URL + "/token",
		Client: logins.Client{ID: "c", AuthMethod: "none"},
	}
	for _, c := range []struct {
		answer string
		want   logins.Login
		err    string
	}{
		{`{"access_token":"access-2","token_type":"bearer"}`, logins.Login{AccessToken: "access-2", RefreshToken: "refresh-1", Scopes: []string{"read"}}, ""},
		{`{"access_token":"access-2","token_type":"Bearer","refresh_token":"refresh-2","scope":"read write"}`, logins.Login{AccessToken: "access-2", RefreshToken: "refresh-2", Scopes: []string{"read", "write"}}, ""},
		{`{}`, logins.Login{AccessToken: "access-1", RefreshToken: "refresh-1", Scopes: []string{"read"}}, "no token"},
		{`{"error":"invalid_grant"}`, logins.Login{AccessToken: "access-1", RefreshToken: "refresh-1", Scopes: []string{"read"}}, logins.ErrEnded.Error()},
	} {
		f.set("/token", func(w http.ResponseWriter, r *http.Request) {
			_ = r.ParseForm()
			form = r.PostForm
			f.json(c.answer)(w, r)
		})
		got, err := signin.Refresh(t.Context(), f.server().HTTP, old)
		if c.err != "" {
			wantError(t, err, c.err)
		} else if err != nil {
			t.Fatal(err)
		}
		short := logins.Login{AccessToken: got.AccessToken, RefreshToken: got.RefreshToken, Scopes: got.Scopes}
		if diff := cmp.Diff(c.want, short); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", c.answer, diff)
		}
		if diff := cmp.Diff(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"refresh-1"}, "resource": {f.URL + "/mcp"}, "client_id": {"c"}}, form); diff != "" {
			t.Errorf("the request (-want +got):\n%s", diff)
		}
	}
}
