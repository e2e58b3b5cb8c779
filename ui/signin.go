package ui

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/auth"
)

// An Issuer signs people in with a browser.
type Issuer interface {
	Name() string // for people

	// Begin begins a sign-in that ends at the address redirect.
	Begin(ctx context.Context, redirect string) (SignIn, error)
}

// A SignIn has begun at an issuer.
type SignIn struct {
	Address string // for the browser
	Finish  func(ctx context.Context, redirected string) (token string, err error)
}

// Paths of the sign-in.
const (
	signInPath   = "signin"
	beginPath    = "signin/begin"
	callbackPath = "signin/callback"
	logoutPath   = "logout"
)

// signIn is the data of the page.
type signIn struct {
	Why    string // the earlier sign-in does not count, or the latest one has failed
	Hint   string
	Next   string // the page that was asked for
	Token  string // for the form
	Issuer string // empty: there is none
	Done   bool   // the browser comes back from the issuer
}

func (signIn) PageTitle() string { return "Sign in" }

// protected lets those in who have signed in, and shows the others how to.
func (c *Console) protected(d Door, inside http.Handler) http.Handler {
	mux := http.NewServeMux()
	at := func(pattern string, serve func(*Visit, Door)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { serve(c.visit(w, r, d), d) })
	}
	at("POST /"+signInPath, signInWithToken)
	at("POST /"+logoutPath, logOut)
	if d.Issuer != nil {
		at("GET /"+beginPath, beginSignIn)
		at("GET /"+callbackPath, finishSignIn)
	}
	mux.HandleFunc("GET /assets/{name}", c.serveAsset)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		word := d.cookie(r, sessionCookie)
		s, _, known := c.sessions.get(word)
		if !known {
			askToSignIn(c.visit(w, r, d), d, nil)
			return
		}
		if refusal := d.Guard.Pass(w, r, s.token, inside); refusal != nil {
			if refusal.Status != http.StatusServiceUnavailable { // the issuer cannot be asked at present
				c.sessions.remove(word)
			}
			askToSignIn(c.visit(w, r, d), d, refusal)
		}
	})
	return mux
}

// askToSignIn answers with the page on which people sign in, in place of the one that they have asked for.
func askToSignIn(v *Visit, d Door, why *auth.Refusal) {
	if v.Fragment() || v.Method != http.MethodGet && v.Method != http.MethodHead && v.URL.Path != "/"+signInPath {
		v.w.Header().Set("HX-Refresh", "true")
		http.Error(v.w, "sign in", http.StatusUnauthorized)
		return
	}
	data := signIn{Token: v.token(), Next: cmp.Or(v.FormValue("next"), strings.TrimPrefix(v.URL.RequestURI(), "/"))}
	if v.URL.Path == "/"+signInPath || v.URL.Path == "/"+callbackPath {
		data.Next = v.FormValue("next")
	}
	if d.Issuer != nil {
		data.Issuer = d.Issuer.Name()
	}
	if why != nil {
		data.Why, data.Hint = why.Text, why.Hint
	}
	v.write(http.StatusUnauthorized, v.console.signIns, "bare", v.layout(v.console.signIns, data))
}

// signInWithToken opens a session for the token of a form.
func signInWithToken(v *Visit, d Door) {
	v.Body = http.MaxBytesReader(v.w, v.Body, maxSignIn)
	if err := v.checkCSRF(); err != nil {
		v.fail(err)
		return
	}
	if refusal := v.open(d, strings.TrimSpace(v.PostFormValue("token"))); refusal != nil {
		askToSignIn(v, d, refusal)
		return
	}
	v.To(ownPath(v.PostFormValue("next")))
}

// maxSignIn bounds the form of a caller who is not known yet, in bytes.
const maxSignIn = 64 << 10

// open opens a session for a token, or returns why there is none.
func (v *Visit) open(d Door, token string) *auth.Refusal {
	if token == "" || len(token) > auth.MaxToken {
		return auth.Invalid("this is no token", "paste the whole token: it begins with mcsh_, or comes from your issuer")
	}
	identity, refusal := d.Guard.Identify(v.Context(), token)
	if refusal != nil {
		if d.Guard.Refused != nil {
			d.Guard.Refused(v.Request, refusal)
		}
		return refusal
	}
	of := func(s session) bool { return s.person == identity.ID }
	all := func(session) bool { return true }
	word, fits := v.console.sessions.add(session{token, identity.ID}, bound[session]{maxPersonSessions, of}, bound[session]{maxSessions, all})
	if !fits {
		return auth.Unready(noRoom, "try again; other people have to log out first, or the operator gives the gateway more memory (--memory)")
	}
	d.setCookie(v, sessionCookie, word, http.SameSiteStrictMode)
	return nil
}

// noRoom says why a sign-in does not go on.
const noRoom = "the gateway has no memory for another sign-in at present"

// logOut ends the session of a browser.
func logOut(v *Visit, d Door) {
	v.Body = http.MaxBytesReader(v.w, v.Body, maxSignIn)
	word := d.cookie(v.Request, sessionCookie)
	s, _, _ := v.console.sessions.get(word)
	v.Who.ID = s.person
	if err := v.checkCSRF(); err != nil {
		v.fail(err)
		return
	}
	v.console.sessions.remove(word)
	d.setCookie(v, sessionCookie, "", http.SameSiteStrictMode)
	v.To("")
}

// beginSignIn leads a browser to the issuer. Only this browser can end the sign-in.
func beginSignIn(v *Visit, d Door) {
	begin, err := d.Issuer.Begin(v.Context(), d.address(v)+callbackPath)
	if err != nil {
		v.fail(&Problem{http.StatusBadGateway, "The issuer cannot be asked", err.Error(), "try again; the log of the gateway says more"})
		return
	}
	all := func(begun) bool { return true }
	word, fits := v.console.begun.add(begun{begin, ownPath(v.FormValue("next"))}, bound[begun]{maxBegun, all})
	if !fits {
		v.fail(&Problem{http.StatusServiceUnavailable, "You cannot sign in at present", noRoom, "try again"})
		return
	}
	d.setCookie(v, begunCookie, word, http.SameSiteLaxMode) // the way back begins at another site
	http.Redirect(v.w, v.Request, begin.Address, http.StatusSeeOther)
}

// finishSignIn opens a session for a browser that comes back from the issuer.
func finishSignIn(v *Visit, d Door) {
	word := d.cookie(v.Request, begunCookie)
	b, made, known := v.console.begun.get(word)
	v.console.begun.remove(word)
	d.setCookie(v, begunCookie, "", http.SameSiteLaxMode)
	if !known || time.Since(made) > begunWait {
		askToSignIn(v, d, auth.Invalid("this browser did not begin this sign-in, or began it too long ago", "sign in again"))
		return
	}
	token, err := b.signIn.Finish(v.Context(), d.address(v)+callbackPath+"?"+v.URL.RawQuery)
	if err != nil {
		askToSignIn(v, d, auth.Invalid("the issuer has not signed you in: "+err.Error(), "sign in again"))
		return
	}
	if refusal := v.open(d, token); refusal != nil {
		askToSignIn(v, d, refusal)
		return
	}
	// A redirection would still count as one of the issuer, and browsers would not send the new cookie.
	v.write(http.StatusOK, v.console.signIns, "bare", v.layout(v.console.signIns, signIn{Done: true, Next: b.next}))
}

// ownPath returns a path below the base of the console, or "" for an address that leads out or is too long.
func ownPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || len(next) > maxNext || u.Scheme != "" || u.Host != "" || u.Opaque != "" || strings.HasPrefix(next, "/") || strings.ContainsAny(next, "\\\r\n\t") {
		return ""
	}
	return next
}

// Cookies.
const (
	sessionCookie = "session"
	begunCookie   = "signin"
)

// cookieName returns the name of a cookie. Cookies of one host know no ports, so the name is that of host and port.
func (d Door) cookieName(r *http.Request, kind string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(r.Host)))
	return "mcsh-" + kind + "-" + hex.EncodeToString(sum[:4])
}

func (d Door) cookie(r *http.Request, kind string) string {
	c, err := r.Cookie(d.cookieName(r, kind))
	if err != nil || len(c.Value) > 100 {
		return ""
	}
	return c.Value
}

// setCookie sets a cookie until the browser ends, or removes it if value is empty.
func (d Door) setCookie(v *Visit, kind, value string, same http.SameSite) {
	c := &http.Cookie{Name: d.cookieName(v.Request, kind), Value: value, Path: v.Base, HttpOnly: true, SameSite: same, Secure: d.secure(v.Request)}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(v.w, c)
}

// secure reports whether browsers come by TLS.
func (d Door) secure(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(d.Public, "https://")
}

// address returns the address of the console as browsers know it.
func (d Door) address(v *Visit) string {
	if d.Public != "" {
		return strings.TrimSuffix(d.Public, "/") + "/"
	}
	if v.TLS != nil {
		return "https://" + v.Host + v.Base
	}
	return "http://" + v.Host + v.Base
}
