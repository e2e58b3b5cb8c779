package control_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/control"
)

// knownServers are two servers. What is done with them is in did.
type knownServers struct{ did []string }

func (knownServers) ShowServers(_ context.Context, v control.Viewer, server string) ([]control.ServerDetail, error) {
	tools := 3
	list := []control.ServerDetail{
		{Server: control.Server{Name: "git", Status: "failed", Code: "SERVER_UNAVAILABLE"}, Transport: "stdio"},
		{Server: control.Server{Name: "jira", Status: "disabled", Where: "mcp.json:3"}, Transport: "http", Tools: &tools},
	}
	if v.Results {
		list[0].Why = "words of the server"
	}
	list = slices.DeleteFunc(list, func(s control.ServerDetail) bool { return server != "" && s.Name != server })
	if len(list) == 0 {
		return nil, &control.Error{Status: http.StatusNotFound, Message: "there is no server " + server, Hint: "did you mean git?"}
	}
	return list, nil
}

func (k *knownServers) RestartServer(_ context.Context, server string) error {
	return k.direct("restart", server)
}

func (k *knownServers) DisableServer(_ context.Context, server string) error {
	return k.direct("disable", server)
}

func (k *knownServers) EnableServer(_ context.Context, server string) error {
	return k.direct("enable", server)
}

func (k *knownServers) direct(what, server string) error {
	if server == "" {
		return &control.Error{Status: http.StatusNotFound, Message: "there is no such server"}
	}
	k.did = append(k.did, what+" "+server)
	return nil
}

// TestServers: a client sees servers and directs them, and words of servers reach only those who may see data.
func TestServers(t *testing.T) {
	state, source := t.TempDir(), &gateway{id: "a"}
	s, err := control.Listen(state, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Serve(source)
	client := find(t, state)["a"]
	for _, server := range []string{"", "jira"} {
		want, _ := source.ShowServers(t.Context(), control.Viewer{Results: true}, server) // it cannot fail
		got, err := client.ShowServers(t.Context(), server)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", server, err, diff)
		}
	}
	for _, act := range []func(context.Context, string) error{client.RestartServer, client.DisableServer, client.EnableServer} {
		if err := act(t.Context(), "git"); err != nil {
			t.Error(err)
		}
		if e, ok := errors.AsType[*control.Error](act(t.Context(), "")); !ok || e.Status != http.StatusNotFound {
			t.Errorf("without a name: got %v", e)
		}
	}
	if got := strings.Join(source.did, ", "); got != "restart git, disable git, enable git" {
		t.Errorf("it did %s", got)
	}
	if _, err := client.ShowServers(t.Context(), "gti"); err == nil || !strings.Contains(err.Error(), "there is no server gti") {
		t.Errorf("got %v", err)
	}
	w := httptest.NewRecorder()
	control.Handler(source, control.Viewer{All: true}).ServeHTTP(w, httptest.NewRequest("POST", "/v1/servers/show", strings.NewReader("{}")))
	if body := w.Body.String(); w.Code != http.StatusOK || strings.Contains(body, "words of the server") || !strings.Contains(body, `"tools":3`) {
		t.Errorf("without a right to data: %d %s", w.Code, body)
	}
}
