package ui

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
)

// policy allows what comes from the console itself, and nothing that stands in a page. Pictures of results are blobs.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; font-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'self'; frame-ancestors 'none'"

// guarded adds what browsers need to protect a page, and refuses forms of other origins.
func guarded(h http.Handler) http.Handler {
	own := http.NewCrossOriginProtection().Handler(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		own.ServeHTTP(w, r)
	})
}

// Where the token of a form is.
const (
	tokenHeader = "X-Console-Token"
	tokenField  = "console-token"
)

// token returns the token that shows that a form is of a page of this console for this person.
func (v *Visit) token() string {
	mac := hmac.New(sha256.New, v.console.key)
	mac.Write([]byte(v.Who.ID))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:18])
}

// checkCSRF refuses a form without its token.
func (v *Visit) checkCSRF() error {
	given := v.Request.Header.Get(tokenHeader)
	if given == "" {
		given = v.PostFormValue(tokenField)
	}
	if hmac.Equal([]byte(given), []byte(v.token())) {
		return nil
	}
	return &Problem{http.StatusForbidden, "This page is too old", "the gateway has restarted, or somebody else has signed in, since the page was opened", "reload the page and try again"}
}
