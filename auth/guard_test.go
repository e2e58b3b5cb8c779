package auth_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/auth/tokens"
)

// unread fails a test when a body is read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body of a refused request was read")
	return 0, io.EOF
}

// TestLateBody: an admitted request whose body comes when its token has gone is refused.
func TestLateBody(t *testing.T) {
	for _, test := range []struct {
		name string
		gone bool
		wait time.Duration
	}{
		{"a token that is still there", false, 10 * time.Second},
		{"a token that has gone", true, 10 * time.Second},
		{"a token that has gone a moment ago", true, 100 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				token, data := newToken(t, "alice", nil, time.Time{})
				path := filepath.Join(t.TempDir(), "tokens")
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
				file, err := tokens.Open(path, tokens.Options{})
				if err != nil {
					t.Fatal(err)
				}
				guard := &auth.Guard{Verifiers: []auth.Verifier{file}}
				comes, sender := io.Pipe()
				read := make(chan error, 1)
				go guard.Protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					_, err := io.ReadAll(r.Body)
					read <- err
				})).ServeHTTP(httptest.NewRecorder(), func() *http.Request {
					r := httptest.NewRequest(http.MethodPost, "/mcp", comes)
					r.Header.Set("Authorization", "Bearer "+token)
					return r
				}())
				io.WriteString(sender, "{")
				if test.gone {
					data, _ = tokens.Remove(data, "alice", "")
				}
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
				time.Sleep(test.wait)
				io.WriteString(sender, "}")
				sender.Close()
				err = <-read
				if refusal, refused := errors.AsType[*auth.Refusal](err); refused != test.gone || refused && refusal.Status != http.StatusUnauthorized || !refused && err != nil {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// newToken makes a token and the line of its file.
func newToken(t *testing.T, name string, file []byte, expires time.Time) (string, []byte) {
	t.Helper()
	token, entry, err := tokens.New(name, expires)
	if err != nil {
		t.Fatal(err)
	}
	return token, tokens.Add(file, entry)
}

// TestGuard: the requests that are admitted, and the answers to the others.
func TestGuard(t *testing.T) {
	alices, data := newToken(t, "alice", nil, time.Time{})
	late, data := newToken(t, "late", data, time.Now().Add(-time.Hour))
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := tokens.Open(path, tokens.Options{})
	if err != nil {
		t.Fatal(err)
	}
	guard := &auth.Guard{Verifiers: []auth.Verifier{file}, Open: []string{"/healthz"}}
	for _, test := range []struct {
		name, method, target string
		header               []string // values of Authorization
		status               int
		challenge, body      string
	}{
		{"a token", "POST", "/mcp", []string{"Bearer " + alices}, 200, "", "token alice"},
		{"a scheme in lower case", "POST", "/mcp", []string{"bearer  " + alices}, 200, "", "token alice"},
		{"another method", "GET", "/mcp", []string{"Bearer " + alices}, 200, "", "token alice"},
		{"no token", "POST", "/mcp", nil, 401, `Bearer realm="mcsh"`, `wants to know who you are: send one header "Authorization: Bearer TOKEN"`},
		{"no token for another path", "GET", "/metrics", nil, 401, "Bearer ", "who you are"},
		{"no token for a path that is not there", "GET", "/nothing", nil, 401, "Bearer ", "who you are"},
		{"no token for a method", "OPTIONS", "/mcp", nil, 401, "Bearer ", "who you are"},
		{"an unknown token", "POST", "/mcp", []string{"Bearer mcsh_x"}, 401, `error="invalid_token"`, "does not know the token: ask its operator for one, who makes it with: mcsh token new NAME"},
		{"a hash instead", "POST", "/mcp", []string{"Bearer sha256:" + strings.Repeat("0", 64)}, 401, `error="invalid_token"`, "does not know"},
		{"a token that ran out", "POST", "/mcp", []string{"Bearer " + late}, 401, `error="invalid_token", error_description="the token of late ran out at`, "mcsh token new late --another"},
		{"another scheme", "POST", "/mcp", []string{"Basic " + alices}, 401, `error="invalid_token"`, "of another scheme"},
		{"no scheme", "POST", "/mcp", []string{alices}, 401, `error="invalid_token"`, "of another scheme"},
		{"a scheme alone", "POST", "/mcp", []string{"Bearer "}, 401, `error="invalid_token"`, "holds no token"},
		{"words", "POST", "/mcp", []string{"Bearer " + alices + " x"}, 401, `error="invalid_token"`, "characters that no token has"},
		{"a tab", "POST", "/mcp", []string{"Bearer\t" + alices}, 401, `error="invalid_token"`, "of another scheme"},
		{"a huge token", "POST", "/mcp", []string{"Bearer " + strings.Repeat("x", 1<<20)}, 401, `error="invalid_token"`, "longer than 16384 bytes"},
		{"two headers", "POST", "/mcp", []string{"Bearer " + alices, "Bearer " + alices}, 400, `error="invalid_request"`, "there are 2 Authorization headers"},
		{"a token in the address", "POST", "/mcp?access_token=" + alices, nil, 400, `error="invalid_request"`, "a token in the address is not taken"},
		{"a token in both", "POST", "/mcp?x=1&Access_Token=" + alices, []string{"Bearer " + alices}, 400, `error="invalid_request"`, "in the address"},
		{"what anybody may ask", "GET", "/healthz", nil, 200, "", ""},
		{"what anybody may ask, with a wrong token", "GET", "/healthz", []string{"Bearer x"}, 200, "", ""},
		{"nearly what anybody may ask", "GET", "/healthz/", nil, 401, "Bearer ", ""},
		{"where to sign in, if there were a place", "GET", "/.well-known/oauth-protected-resource/mcp", nil, 404, "", "not found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var body io.Reader
			if test.status != 200 {
				body = unread{t}
			}
			r := httptest.NewRequest(test.method, test.target, body)
			for _, value := range test.header {
				r.Header.Add("Authorization", value)
			}
			w := httptest.NewRecorder()
			guard.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if info := sdk.TokenInfoFromContext(r.Context()); info != nil {
					io.WriteString(w, info.UserID)
					if r.Header["Authorization"] != nil {
						t.Error("the token goes on")
					}
				}
			})).ServeHTTP(w, r)
			challenge := w.Header().Get("WWW-Authenticate")
			if w.Code != test.status || !strings.Contains(challenge, test.challenge) || (challenge == "") != (test.challenge == "") ||
				!strings.Contains(w.Body.String(), test.body) {
				t.Errorf("got %d, %q, %q", w.Code, challenge, w.Body)
			}
			if strings.Contains(challenge+w.Body.String(), alices) {
				t.Error("the answer holds the token")
			}
		})
	}
}
