package upstream_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// cutOnce are tools whose first call ends with its time as soon as its task is kept.
type cutOnce struct {
	stages.Tools
	calls atomic.Int32 // that were not for a task that is kept
}

func (c *cutOnce) CallTool(ctx context.Context, call stages.Call) (stages.Result, error) {
	if call.Task.Handle != "" {
		return c.Tools.CallTool(ctx, call)
	}
	c.calls.Add(1)
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	own, keep := *call.Task, call.Task.Keep
	own.Keep = func(handle string) {
		keep(handle)
		cancel()
	}
	call.Task = &own
	_, err := c.Tools.CallTool(inner, call)
	if inner.Err() == nil {
		return stages.Result{}, err
	}
	return stages.Result{}, stages.Errorf(stages.Timeout, "", "the time is up")
}

// TestTaskEverything runs the tool of server-everything that answers with a task, in a pipeline that is cut off and continued.
func TestTaskEverything(t *testing.T) {
	t.Parallel() // it waits
	const everything = "@modelcontextprotocol/server-everything"
	script := filepath.Join(parttest.Packages(t, everything), everything, "dist", "index.js")
	// The program is unused between two requests for the task, but it is not ended.
	p := staticPool(t, upstream.Options{IdleStop: 300 * time.Millisecond}, upstream.Server{Name: "e", Dial: upstream.Stdio(upstream.Command{
		Name: "node", Args: []string{script, "stdio"}, Lookup: os.LookupEnv,
	})})
	store := runs.New(runs.Options{Dir: t.TempDir()})
	defer store.Close()
	tools := &cutOnce{Tools: p}
	deps := stages.Deps{Tools: tools, Runs: store.Of("me")}
	run := func(pipeline string) (string, stages.Report, error) {
		t.Helper()
		plan, errs := stages.Compile(t.Context(), []byte(pipeline), deps)
		if errs != nil {
			t.Fatal(errs)
		}
		var out, words strings.Builder
		report, err := plan.Run(t.Context(), nil, &out, stages.RunOptions{Progress: func(p stages.Progress) { words.WriteString(p.Tool.Message + "\n") }})
		if err == nil && !strings.Contains(words.String(), "...") {
			t.Errorf("the progress was %q", words.String())
		}
		return out.String(), report, err
	}
	_, report, err := run(`[{"type":"tool","server":"e","name":"simulate-research-query","args":{"topic":"tides"}}]`)
	wantError(t, err, stages.Timeout, "", "waits for the task")
	out, report, err := run("[" + stages.ResumeStage(report.Run) + "]")
	if err != nil || !strings.Contains(out, "# Research Report: tides") || tools.calls.Load() != 1 {
		t.Errorf("got %v, %.200q after %d calls, report %+v", err, out, tools.calls.Load(), report)
	}
}

// TestTaskEverythingAsks: a task of server-everything asks in the middle of its work, over each transport, and the answer is in
// its result.
func TestTaskEverythingAsks(t *testing.T) {
	t.Parallel() // it waits
	for name, dial := range everythingServers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := dial(t)
			s.Name, s.Protocol = "e", upstream.OnlyOlder
			p := staticPool(t, upstream.Options{}, s)
			var asked []stages.Question
			who := &stages.Asker{Form: true, Ask: func(_ context.Context, q stages.Question) (json.RawMessage, error) {
				asked = append(asked, q)
				return json.RawMessage(`{"action":"accept","content":{"interpretation":"snake"}}`), nil
			}}
			res, err := p.CallTool(t.Context(), stages.Call{
				Server: "e", Name: "simulate-research-query", Item: "7", Args: json.RawMessage(`{"topic":"python","ambiguous":true}`), Asker: who,
			})
			if err != nil || !strings.Contains(string(res.Data), "# Research Report: python (snake)") {
				t.Errorf("got %.300s, %v", res.Data, err)
			}
			if len(asked) != 1 || asked[0].Tool != "simulate-research-query" || asked[0].Item != "7" {
				t.Errorf("asked %+v", asked)
			}
		})
	}
}
