package signin_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// A script is a server in memory: its answers at the device and token endpoints, in their order.
type script struct {
	device string
	tokens []string // empty: no answer
	error  int      // status of answers with an error
	asked  []time.Time
	forms  []url.Values
}

// RoundTrip implements [http.RoundTripper].
func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	const metadata = `{"issuer":"https://h","token_endpoint":"https://h/token","registration_endpoint":"https://h/reg",
		"device_authorization_endpoint":"https://h/device","code_challenge_methods_supported":["S256"]}`
	text := map[string]string{
		"/.well-known/oauth-protected-resource/mcp": `{"resource":"https://h/mcp","authorization_servers":["https://h"]}`,
		"/.well-known/oauth-authorization-server":   metadata,
		"/reg":    `{"client_id":"c"}`,
		"/device": s.device,
	}[req.URL.Path]
	if req.URL.Path == "/token" {
		s.asked = append(s.asked, time.Now())
		text = s.tokens[min(len(s.asked), len(s.tokens))-1]
		body, _ := io.ReadAll(req.Body)
		form, _ := url.ParseQuery(string(body))
		s.forms = append(s.forms, form)
		if text == "" {
			return nil, io.ErrUnexpectedEOF
		}
	}
	status := http.StatusOK
	switch {
	case req.URL.Path == "/mcp":
		status = http.StatusUnauthorized
	case strings.Contains(text, `"error"`):
		status = s.error
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), Request: req,
	}, nil
}

// TestDevice: how long we wait between the questions of a sign-in on another device, and how it ends, also where the
// authorization server refuses with the status 200.
func TestDevice(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusOK} {
		t.Run(http.StatusText(status), func(t *testing.T) { testDevice(t, status) })
	}
}

func testDevice(t *testing.T, status int) {
	const (
		pending = `{"error":"authorization_pending"}`
		slower  = `{"error":"slow_down"}`
		token   = `{"access_token":"abc","token_type":"Bearer"}`
		rest    = `"device_code":"d-code","user_code":"ABCD-EFGH","verification_uri":"https://h/go"}`
	)
	for name, c := range map[string]struct {
		device string
		tokens []string
		waits  []int // seconds, at the beginning
		err    string
	}{
		"pending":          {`{"expires_in":600,"interval":2,` + rest, []string{pending, pending, token}, []int{2, 2, 2}, ""},
		"no interval":      {`{"expires_in":600,` + rest, []string{pending, token}, []int{5, 5}, ""},
		"slow down":        {`{"expires_in":600,"interval":1,` + rest, []string{slower, pending, slower, token}, []int{1, 6, 6, 11}, ""},
		"always slow down": {`{"expires_in":6000,"interval":1,` + rest, []string{slower}, []int{1, 6, 11, 16, 21, 26, 31, 36, 41, 46, 51, 56, 60, 60}, "in time"},
		"tiny interval":    {`{"expires_in":600,"interval":1e-9,` + rest, []string{pending, token}, []int{1, 1}, ""},
		"huge interval":    {`{"expires_in":600,"interval":1e300,` + rest, []string{pending, token}, []int{60, 60}, ""},
		"lost answers":     {`{"expires_in":600,"interval":1,` + rest, []string{"", "", token}, []int{1, 2, 4}, ""},
		"no answers":       {`{"expires_in":600,"interval":1,` + rest, []string{""}, []int{1, 2, 4}, "EOF"},
		"expires":          {`{"expires_in":5,"interval":2,` + rest, []string{pending}, []int{2, 2}, "in time"},
		"expires there":    {`{"expires_in":600,"interval":2,` + rest, []string{pending, `{"error":"expired_token"}`}, []int{2, 2}, "in time"},
		"never expires":    {`{"expires_in":1e300,"interval":60,` + rest, []string{pending}, []int{60, 60}, "in time"},
		"denied":           {`{"expires_in":600,"interval":2,` + rest, []string{`{"error":"access_denied","error_description":"d-code"}`}, []int{2}, "access_denied"},
		"no expiry":        {`{` + rest, nil, nil, "not as the specification"},
		"no code":          {`{"expires_in":600,"user_code":"A","verification_uri":"https://h/go"}`, nil, nil, "not as the specification"},
		"script to open":   {`{"expires_in":600,"device_code":"d","user_code":"A","verification_uri":"javascript:x"}`, nil, nil, "for another device"},
		"foreign page":     {`{"expires_in":600,"device_code":"d-code","user_code":"A","verification_uri":"https://bank.example/device"}`, nil, nil, "not on the host"},
		"page below":       {`{"expires_in":600,"device_code":"d-code","user_code":"A","verification_uri":"https://a.h/device"}`, nil, nil, "not on the host"},
		"terminal codes":   {`{"expires_in":600,"device_code":"d","user_code":"A\u001b[2J","verification_uri":"https://h/go"}`, nil, nil, "cannot be shown"},
		"refused at once":  {`{"error":"unauthorized_client"}`, nil, nil, "unauthorized_client"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{device: c.device, tokens: c.tokens, error: status}
				target, err := signin.Discover(t.Context(), signin.Server{Name: "h", URL: "https://h/mcp", HTTP: &http.Client{Transport: s}}, "")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := target.Begin(t.Context(), callback); err == nil || !target.CanDevice() {
					t.Error("an issuer without an address for browsers begins a sign-in there")
				}
				begun, shown := time.Now(), ""
				login, err := target.Device(t.Context(), func(address, code string) { shown = address + " " + code })
				if c.err != "" {
					wantError(t, err, c.err)
				} else if err != nil || login.AccessToken != "abc" {
					t.Errorf("got %v, want a login", err)
				}
				if err != nil && strings.Contains(err.Error(), "d-code") {
					t.Errorf("the error shows a secret: %v", err)
				}
				if c.tokens != nil && shown != "https://h/go ABCD-EFGH" {
					t.Errorf("shown: %q", shown)
				}
				if time.Since(begun) > time.Hour {
					t.Errorf("it took %v", time.Since(begun))
				}
				checkWaits(t, c.waits, begun, s)
			})
		})
	}
}

// TestDevicePage: the page for people is on the host of the issuer, or the operator has chosen the issuer.
func TestDevicePage(t *testing.T) {
	for _, issuer := range []string{"", "https://h"} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{
				device: `{"expires_in":600,"device_code":"d-code","user_code":"A","verification_uri":"https://other.example/device"}`,
				tokens: []string{`{"access_token":"abc","token_type":"Bearer"}`},
			}
			server := signin.Server{Name: "h", URL: "https://h/mcp", HTTP: &http.Client{Transport: s}, Settings: signin.Settings{Issuer: issuer}}
			target, err := signin.Discover(t.Context(), server, "")
			if err != nil {
				t.Fatal(err)
			}
			shown := false
			if _, err := target.Device(t.Context(), func(string, string) { shown = true }); shown != (issuer != "") || shown != (err == nil) {
				t.Errorf("with the configured issuer %q: shown %t, %v", issuer, shown, err)
			}
		})
	}
}

// checkWaits compares the seconds between the first questions, and what each asks.
func checkWaits(t *testing.T, want []int, begun time.Time, s *script) {
	t.Helper()
	var waits []int
	for _, at := range s.asked {
		waits = append(waits, int(at.Sub(begun).Seconds()))
		begun = at
	}
	if diff := cmp.Diff(want, waits[:min(len(waits), len(want))]); diff != "" && len(want)+len(waits) > 0 {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	for _, form := range s.forms {
		if form.Get("resource") != "https://h/mcp" || form.Get("device_code") != "d-code" || form.Get("client_id") != "c" {
			t.Errorf("the request has %v", form)
		}
	}
}

// FuzzChallenge: a header cannot make the parser fail, and gives only scopes that can be shown.
func FuzzChallenge(f *testing.F) {
	for _, seed := range []string{
		``, `Bearer`, `Bearer resource_metadata="https://h/x", scope="a b"`, `Basic realm="x", Bearer error="insufficient_scope"`,
		`Bearer scope="a\"b"`, `Negotiate abc==`, `Bearer a=`, `,,,`, `"`, `Bearer scope="` + strings.Repeat("a ", 3000) + `"`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		c := signin.ParseChallenge(header)
		for _, scope := range c.Scopes {
			if scope == "" || strings.ContainsAny(scope, " \"\\\x1b\n") || len(scope) > 256 {
				t.Errorf("the scope %q", scope)
			}
		}
		if len(c.Scopes) > 200 || len(c.Code) > 70 || strings.ContainsAny(c.Code, "\n\x1b") {
			t.Errorf("%d scopes and the code %q", len(c.Scopes), c.Code)
		}
	})
}

// FuzzMetadata: documents of a hostile server end in an error or in addresses that secrets may go to.
func FuzzMetadata(f *testing.F) {
	f.Add(`{"resource":"https://h/mcp","authorization_servers":["https://h"]}`, `{"issuer":"https://h"}`, `{"access_token":"a","token_type":"Bearer"}`)
	f.Add(`{"resource":"https://h","authorization_servers":["https://h/a/../b","x"]}`, `[]`, `{"expires_in":"1e999"}`)
	f.Add(`{}`, `{"code_challenge_methods_supported":["S256"],"issuer":"https://h","authorization_endpoint":"https://h/?a=%zz","token_endpoint":"https://h/t"}`, `{"id_token":"a.b.c"}`)
	f.Fuzz(func(t *testing.T, resource, issuer, tokens string) {
		by := fuzzed{resource, issuer, tokens}
		target, err := signin.Discover(t.Context(), signin.Server{URL: "https://h/mcp", HTTP: &http.Client{Transport: by}, Settings: signin.Settings{ClientID: "c"}}, "Bearer")
		if err != nil {
			return
		}
		if !signin.Covers(target.Resource, "https://h/mcp") {
			t.Errorf("the resource is %q", target.Resource)
		}
		attempt, err := target.Begin(t.Context(), callback)
		if err != nil {
			return
		}
		if at, err := url.Parse(attempt.URL); err != nil || at.Scheme != "https" && at.Scheme != "http" || at.User != nil {
			t.Errorf("the browser opens %q", attempt.URL)
		}
		login, err := attempt.Finish(t.Context(), callback+"?code=x&state="+attempt.State)
		if text := fmt.Sprint(err); err == nil && (login.AccessToken == "" || strings.ContainsAny(login.AccessToken, "\r\n")) || len(text) > 3000 {
			t.Errorf("the token %q, the error %s", login.AccessToken, text)
		}
		if _, err := json.Marshal(login); err != nil {
			t.Errorf("the login cannot be kept: %v", err)
		}
	})
}

// fuzzed answers with documents, by the kind of address.
type fuzzed struct{ resource, issuer, tokens string }

// RoundTrip implements [http.RoundTripper].
func (f fuzzed) RoundTrip(req *http.Request) (*http.Response, error) {
	text := f.issuer
	switch {
	case strings.Contains(req.URL.Path, "oauth-protected-resource"):
		text = f.resource
	case req.Method == http.MethodPost:
		text = f.tokens
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), Request: req,
	}, nil
}
