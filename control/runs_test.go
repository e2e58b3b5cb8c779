package control_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/control"
)

// knownRuns are runs in tests, which note what they are asked.
type knownRuns struct{ queries []any }

var oneRun = control.Run{Request: "q_1", Caller: "alice", State: control.RunRunning, Started: time.Unix(1, 0).UTC(), Stages: 2}

func (k *knownRuns) Runs(_ context.Context, v control.Viewer, f control.RunFilter) control.RunList {
	k.queries = append(k.queries, v, f)
	return control.RunList{Cursor: 3, Runs: []control.Run{oneRun}}
}

func (k *knownRuns) Run(_ context.Context, v control.Viewer, request string) (control.RunDetail, error) {
	k.queries = append(k.queries, v, request)
	return control.RunDetail{Run: oneRun, Plan: []byte(`[{"type":"x"}]`), Stages: []control.RunStage{}}, nil
}

func (k *knownRuns) Output(_ context.Context, v control.Viewer, r control.OutputRequest) (control.OutputPart, error) {
	k.queries = append(k.queries, v, r)
	return control.OutputPart{Offset: r.Offset, Size: 9, Data: []byte("\x00rest")}, nil
}

func (k *knownRuns) Wait(ctx context.Context, cursor uint64) (uint64, error) {
	k.queries = append(k.queries, cursor)
	return cursor + 1, nil
}

func (k *knownRuns) Cancel(v control.Viewer, request string) error {
	k.queries = append(k.queries, v, request)
	return &control.Error{Status: http.StatusConflict, Message: "it has ended"}
}

// TestRuns: a program of the same user asks with the data of runs, one of another machine only where that is allowed; both get the
// answers of the gateway.
func TestRuns(t *testing.T) {
	source := &gateway{id: "a"}
	remote := func(v control.Viewer) *control.Client {
		server := httptest.NewServer(http.StripPrefix(control.Prefix, control.Handler(source, v)))
		t.Cleanup(server.Close)
		return control.Remote(server.URL, "token", http.DefaultTransport)
	}
	state := t.TempDir()
	local, err := control.Listen(state, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	local.Serve(source)
	all, closed := control.Viewer{All: true, Results: true}, control.Viewer{All: true}
	for _, test := range []struct {
		client *control.Client
		viewer control.Viewer
	}{{find(t, state)["a"], all}, {remote(all), all}, {remote(closed), closed}} {
		source.queries = nil
		c, v, ctx := test.client, test.viewer, t.Context()
		filter := control.RunFilter{States: []string{control.RunFailed}, Text: "x", Limit: 2}
		live, err1 := c.Live(ctx)
		list, err2 := c.Runs(ctx, filter)
		run, err3 := c.Run(ctx, "q_1")
		part, err4 := c.Output(ctx, control.OutputRequest{Request: "q_1", Stage: 1, Offset: 4, Max: 5})
		cursor, err5 := c.Wait(ctx, 7)
		err6 := c.Cancel(ctx, "q_1")
		for _, err := range []error{err1, err2, err3, err4, err5} {
			if err != nil {
				t.Error(err)
			}
		}
		if len(live) != 1 || len(list.Runs) != 1 || run.Request != "q_1" || string(part.Data) != "\x00rest" || cursor != 8 || err6 == nil {
			t.Errorf("got %v, %v, %v, %v, %d, %v", live, list, run, part, cursor, err6)
		}
		want := []any{
			v,
			control.RunFilter{States: []string{control.RunRunning, control.RunAsking}},
			v, filter, v, "q_1",
			v,
			control.OutputRequest{Request: "q_1", Stage: 1, Offset: 4, Max: 5},
			uint64(7), v, "q_1",
		}
		if diff := cmp.Diff(want, source.queries); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}
