package control_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/control"
)

// signIns are the sign-ins of a gateway in tests: that with the id "a" ends when it is asked for the second time.
type signIns struct {
	asked  int
	seen   []any // the requests
	failed error
}

func (s *signIns) Logins() ([]control.Login, error) {
	return []control.Login{{Server: "box", Scopes: []string{"read"}, SignedIn: time.Unix(1, 0).UTC()}}, s.failed
}

func (s *signIns) Logout(_ context.Context, r control.LogoutRequest) ([]control.Logout, error) {
	s.seen = append(s.seen, r)
	return []control.Logout{{Server: "box", Revoked: true}}, s.failed
}

func (s *signIns) BeginLogin(_ context.Context, r control.LoginRequest) (control.PendingLogin, error) {
	s.seen = append(s.seen, r)
	return control.PendingLogin{ID: "a", Address: "https://issuer.example"}, s.failed
}

func (s *signIns) WaitLogin(_ context.Context, id string) (control.LoginState, error) {
	s.seen = append(s.seen, id)
	if s.asked++; s.asked < 2 {
		return control.LoginState{State: control.LoginWaiting}, s.failed
	}
	return control.LoginState{State: control.LoginDone, Login: &control.Login{Server: "box"}}, s.failed
}

func (s *signIns) FinishLogin(_ context.Context, f control.LoginEnd) (control.LoginState, error) {
	s.seen = append(s.seen, f)
	return control.LoginState{State: control.LoginWaiting}, s.failed
}

func (s *signIns) CancelLogin(id string) error {
	s.seen = append(s.seen, id)
	return s.failed
}

// TestLogins: a client begins, ends and lists sign-ins, and has the errors of the gateway.
func TestLogins(t *testing.T) {
	state, source := t.TempDir(), &gateway{id: "a"}
	s, err := control.Listen(state, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Serve(source)
	c := find(t, state)["a"]
	list, err := c.Logins(t.Context())
	if err != nil || len(list) != 1 || list[0].Server != "box" {
		t.Errorf("got %v, %v", list, err)
	}
	p, err := c.BeginLogin(t.Context(), control.LoginRequest{Server: "box", Scopes: []string{"write"}})
	if err != nil || p.ID != "a" {
		t.Errorf("got %v, %v", p, err)
	}
	login, err := c.FinishLogin(t.Context(), "a", "http://127.0.0.1:1/callback?code="+strings.Repeat("c", 60<<10))
	if err != nil || login.Server != "box" {
		t.Errorf("got %v, %v", login, err)
	}
	if login, err = c.WaitLogin(t.Context(), "b"); err != nil || login.Server != "box" {
		t.Errorf("got %v, %v", login, err)
	}
	if err := c.CancelLogin(t.Context(), "c"); err != nil {
		t.Error(err)
	}
	out, err := c.Logout(t.Context(), control.LogoutRequest{Server: "box"})
	if err != nil || len(out) != 1 || !out[0].Revoked {
		t.Errorf("got %v, %v", out, err)
	}
	if len(source.seen) != 7 {
		t.Errorf("the gateway has seen %v", source.seen)
	}
	if diff := cmp.Diff([]any{control.LoginRequest{Server: "box", Scopes: []string{"write"}}}, source.seen[:1]); diff != "" {
		t.Error(diff)
	}
	source.failed = &control.Error{Status: http.StatusNotFound, Message: "there is no server", Hint: "look"}
	_, err = c.BeginLogin(t.Context(), control.LoginRequest{})
	if e, ok := err.(*control.Error); !ok || e.Status != http.StatusNotFound || e.Hint != "look" || e.Message != "gateway a: there is no server" {
		t.Errorf("got %#v", err)
	}
	for range 20 { // the answer to a request that is refused while it is still being sent may be lost
		_, err = c.FinishLogin(t.Context(), "a", strings.Repeat("a", 4<<20))
		if e, ok := err.(*control.Error); !ok || e.Status != http.StatusRequestEntityTooLarge || !strings.Contains(e.Message, "more than 128 KiB") {
			t.Fatalf("an address of 4 MiB: %#v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.WaitLogin(ctx, "a"); err == nil {
		t.Error("the wait does not end with its caller")
	}
}

// TestBodies: a body is the object of its request, and bounded.
func TestBodies(t *testing.T) {
	source := &gateway{id: "a"}
	h := control.Handler(source, control.Viewer{})
	for name, c := range map[string]struct {
		path, body string
		status     int
		want       string
	}{
		"right":         {"/v1/logins/begin", `{"server":"box"}`, 200, "issuer.example"},
		"none":          {"/v1/logins/begin", ``, 400, "is not the JSON object of /v1/logins/begin"},
		"another type":  {"/v1/logins/begin", `[]`, 400, "is not the JSON object"},
		"another field": {"/v1/logins/begin", `{"serve":"box"}`, 400, `unknown field`},
		"two objects":   {"/v1/logins/begin", `{"server":"box"} {"server":"other"}`, 400, "something follows it"},
		"too long":      {"/v1/logins/begin", `{"server":"` + strings.Repeat("x", 200<<10) + `"}`, 413, "more than 128 KiB"},
		"not wanted":    {"/v1/reload", `{}`, 413, "takes no body"},
	} {
		req := httptest.NewRequest(http.MethodPost, c.path, bytes.NewReader([]byte(c.body)))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		body, _ := io.ReadAll(w.Body)
		if w.Code != c.status || !strings.Contains(string(body), c.want) {
			t.Errorf("%s: %d %s, want %d %s", name, w.Code, fmt.Sprintf("%.300s", body), c.status, c.want)
		}
	}
}
