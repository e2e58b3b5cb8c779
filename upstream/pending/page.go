package pending

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"encoding/hex"
	"html/template"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// The paths of the pages, below [Options.Public] or at the root of a port.
const (
	startPath    = "/start"
	callbackPath = "/callback"
)

const (
	idField  = "login"  // of the form and of the address of the page
	maxQuery = 64 << 10 // bytes: a code may be long
	maxForm  = 4 << 10  // bytes
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// A view is what a page shows.
type view struct {
	Title string
	Text  string

	// Of the page with the button.
	ID, Server, Host, Issuer, Warning string

	Shared bool // others use the sign-in, too
}

// nothing is the answer to every address that is not right: it says nothing to a stranger.
var nothing = view{
	Title: "Nothing to do here",
	Text: "This address belongs to no sign-in of this browser that waits. It may have ended, or have been opened in another browser: " +
		"begin it again where you have begun it.",
}

// ServeHTTP serves the pages: that at which a sign-in begins, and that to which the issuer sends the browser.
func (p *SignIns) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	serve := map[string]map[string]http.HandlerFunc{
		startPath:    {http.MethodGet: p.showStart, http.MethodPost: p.start},
		callbackPath: {http.MethodGet: p.callback},
	}[path.Join("/", path.Base(r.URL.Path))]
	switch one := serve[r.Method]; {
	case len(r.URL.RawQuery) > maxQuery, serve == nil:
		show(w, http.StatusNotFound, nothing)
	case one == nil:
		allow := http.MethodGet
		if len(serve) > 1 {
			allow += ", " + http.MethodPost
		}
		w.Header().Set("Allow", allow)
		show(w, http.StatusMethodNotAllowed, nothing)
	default:
		one(w, r)
	}
}

// show writes a page. It has no form-action: browsers apply that to where the issuer sends them, too.
func show(w http.ResponseWriter, status int, v view) {
	var body bytes.Buffer
	if err := page.Execute(&body, v); err != nil {
		status = http.StatusInternalServerError // it cannot be: the fields are text
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "same-origin") // the issuer does not see the address; our own form needs an Origin
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Robots-Tag", "noindex, nofollow")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the browser may have gone
}

// open returns the sign-in of an id that is not over and has a page.
func (p *SignIns) open(id string) *SignIn {
	s, err := p.find(id)
	if err != nil || !s.paged || s.over() {
		return nil
	}
	return s
}

// showStart shows the button. It changes nothing: programs that look at links open it, too.
func (p *SignIns) showStart(w http.ResponseWriter, r *http.Request) {
	s := p.open(r.URL.Query().Get(idField))
	if s == nil || !s.canBindTo(r) {
		show(w, http.StatusNotFound, nothing)
		return
	}
	show(w, http.StatusOK, view{
		Title: "Sign in to " + s.Server, ID: s.ID, Server: s.Server, Host: s.host, Issuer: s.issuerHost(), Warning: s.Warning, Shared: s.shared,
	})
}

// start binds the sign-in to the browser, and sends it to the issuer. Only our own page can make it do so.
func (p *SignIns) start(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if http.NewCrossOriginProtection().Check(r) != nil || r.ParseForm() != nil {
		show(w, http.StatusNotFound, nothing)
		return
	}
	s := p.open(r.PostForm.Get(idField))
	if s == nil || !s.bind(w, r) {
		show(w, http.StatusNotFound, nothing)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Location", s.attempt.URL) // http.Redirect would repeat it in a page
	w.WriteHeader(http.StatusSeeOther)
}

// callback takes the answer of the issuer, if it comes with the browser that the sign-in is bound to.
func (p *SignIns) callback(w http.ResponseWriter, r *http.Request) {
	s := p.withState(r.URL.Query().Get("state"))
	if s == nil || !s.isBoundTo(r) || !s.attempt.Answers("?"+r.URL.RawQuery) {
		show(w, http.StatusNotFound, nothing)
		return
	}
	p.complete(s, "?"+r.URL.RawQuery)
	select {
	case <-s.done:
	case <-r.Context().Done():
		return
	}
	v := view{Title: "Signed in", Text: "You are signed in to " + s.Server + ". You can close this tab."}
	if s.err != nil {
		v = view{Title: "Not signed in", Text: "The sign-in to " + s.Server + " has failed. The program that asked you says why. You can close this tab."}
	}
	show(w, http.StatusOK, v)
}

// withState returns the sign-in with a state, or nil.
func (p *SignIns) withState(state string) *SignIn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.all {
		if s != nil && s.paged && subtle.ConstantTimeCompare([]byte(s.attempt.State), []byte(state)) == 1 && !s.over() {
			return s
		}
	}
	return nil
}

// cookie names the cookie of a sign-in: one browser may have several. With https, browsers take it from no other host of the
// domain: else a person who began a sign-in could put their cookie into the browser of somebody else.
func (s *SignIn) cookie() string {
	sum := sha256.Sum256([]byte(s.ID))
	name := "mcsh-" + hex.EncodeToString(sum[:8])
	if s.secure() {
		name = "__Host-" + name
	}
	return name
}

// secure reports whether browsers reach the page by https.
func (s *SignIn) secure() bool { return strings.HasPrefix(s.Address, "https://") }

// isBoundTo reports whether a request comes from the browser that the sign-in is bound to.
func (s *SignIn) isBoundTo(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	given, err := r.Cookie(s.cookie())
	return err == nil && s.browser != "" && subtle.ConstantTimeCompare([]byte(given.Value), []byte(s.browser)) == 1
}

// canBindTo reports whether the sign-in is bound to no other browser than that of a request.
func (s *SignIn) canBindTo(r *http.Request) bool {
	s.mu.Lock()
	free := s.browser == ""
	s.mu.Unlock()
	return free || s.isBoundTo(r)
}

// bind binds the sign-in to a browser, and reports whether it is bound to this one.
func (s *SignIn) bind(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	free := s.browser == ""
	if free {
		s.browser = secret()
	}
	value := s.browser
	s.mu.Unlock()
	if !free {
		return s.isBoundTo(r)
	}
	http.SetCookie(w, &http.Cookie{
		Name: s.cookie(), Value: value, Path: "/", MaxAge: int(lifetime.Seconds()), HttpOnly: true, Secure: s.secure(),
		SameSite: http.SameSiteLaxMode, // the issuer sends the browser back
	})
	return true
}
