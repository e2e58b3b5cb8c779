//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	served "github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// curious are tools that ask in the middle of each call, and return the answer.
type curious struct{ served.Unwatched }

// Tools implements [gateway.Watch].
func (curious) Tools(stages.Tools) stages.Tools { return curious{} }

// Tool implements [stages.Tools].
func (curious) Tool(_ context.Context, server, name string) (*stages.Tool, error) {
	return &stages.Tool{Server: server, Name: name, ReadOnly: true, Annotated: true}, nil
}

// CallTool implements [stages.Tools]. Without a question it returns the list in its arguments.
func (curious) CallTool(ctx context.Context, call stages.Call) (stages.Result, error) {
	var args struct {
		List json.RawMessage
		Ask  string
	}
	if err := json.Unmarshal(call.Args, &args); err != nil || !call.MaySend() {
		return stages.Result{}, fmt.Errorf("the arguments are wrong, or the run has ended: %w", err)
	}
	if args.List != nil {
		return stages.Result{Data: args.List, Kind: stages.Values}, nil
	}
	form := fmt.Sprintf(`{"message":%q,"requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}`, args.Ask)
	answer, err := call.Asker.Ask(ctx, stages.Question{
		Server: call.Server, Tool: call.Name, Item: call.Item, Method: "elicitation/create", Params: json.RawMessage(form),
	})
	return stages.Result{Data: answer, Kind: stages.Values}, err
}

// answering is what a client prints of a pipeline whose server asks.
type answering struct {
	Version string   `json:"version"`
	Output  string   `json:"output"`
	Asked   []string `json:"asked"`
}

// TestAsks: real clients of both eras answer the questions of a server in the middle of a call.
func TestAsks(t *testing.T) {
	t.Parallel()
	g := served.New(served.Options{Upstream: mcptest.Pool(t, map[string]*mcptest.Upstream{"shop": mcptest.New()}), Watch: curious{}})
	server := httptest.NewServer(served.WithDeadlines(g.Handler()))
	t.Cleanup(func() { g.Close(context.Background()); server.Close() })
	const pipeline = `[{"type":"tool","server":"shop","name":"list","args":{"list":[{"ask":"a"},{"ask":"b"}]}},{"type":"tool","server":"shop","name":"buy","for_each":true}]`
	said := func(item int, word string) string {
		return fmt.Sprintf("The server \"shop\" asks for input in a call of its tool \"buy\" (item %d: {\"ask\":%q}). These are its own words:\n  | %s", item, word, word)
	}
	want := answering{
		Output: `[{"action":"accept","content":{"name":"a"}},` + "\n" + `{"action":"accept","content":{"name":"b"}}]`,
		Asked:  []string{said(1, "a"), said(2, "b")},
	}
	for name, client := range askingClients() {
		if byNight(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			got := answered(t, client.argv(t), server.URL+"/mcp", pipeline)
			want.Version = client.version
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// An askingClient is a real client that answers questions.
type askingClient struct {
	argv    func(t *testing.T) []string
	version string // empty: the client does not say
}

func askingClients() map[string]askingClient {
	python := func(mode string) func(t *testing.T) []string {
		return func(t *testing.T) []string { return []string{pythonPath(t), "asks.py", mode} }
	}
	node := func(part, era string) func(t *testing.T) []string {
		return func(t *testing.T) []string {
			nodeDir(t, "@modelcontextprotocol/"+part)
			return []string{"node", ownScript(t, "asks.mjs"), part, era}
		}
	}
	return map[string]askingClient{
		"TypeScript 1":            {node("sdk", "legacy"), ""},
		"TypeScript 2 2025-11-25": {node("client", "legacy"), versions[0]},
		"TypeScript 2 2026-07-28": {node("client", "auto"), versions[1]},
		"Python 2025-11-25":       {python("legacy"), versions[0]},
		"Python 2026-07-28":       {python("auto"), versions[1]},
	}
}

// TestAsksReal: a real server asks real clients of both eras through the gateway, and gets the roots of its entry. By day one
// client answers; others do so in TestAsks.
func TestAsksReal(t *testing.T) {
	t.Parallel()
	const name = "@modelcontextprotocol/server-everything"
	script := filepath.Join(nodeDir(t, name), name, "dist", "index.js")
	pool := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{{
		Name: "e", Asks: upstream.Asks, Roots: []string{"file:///srv/a%20b"}, // one call at a time: its questions name none
		Dial: upstream.Stdio(upstream.Command{Name: "node", Args: []string{script, "stdio"}, Lookup: os.LookupEnv}),
	}}}})
	g := served.New(served.Options{Upstream: pool})
	server := httptest.NewServer(served.WithDeadlines(g.Handler()))
	t.Cleanup(func() { g.Close(context.Background()); server.Close() })
	const question, pipeline = "Please provide inputs for the following fields:", `[{"type":"parallel","branches":{"asks":[{"type":"tool","server":"e","name":"trigger-elicitation-request"}],"roots":[{"type":"tool","server":"e","name":"get-roots-list"}]}}]`
	for name, client := range askingClients() {
		if name != "TypeScript 2 2025-11-25" && !parttest.Night() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			got := answered(t, client.argv(t), server.URL+"/mcp", pipeline)
			if !strings.Contains(got.Output, "- Name: "+question) || !strings.Contains(got.Output, "file:///srv/a%20b") || got.Version != client.version {
				t.Errorf("got %+v", got)
			}
			if len(got.Asked) != 1 || !strings.HasPrefix(got.Asked[0], `The server "e" asks for input in a call of its tool "trigger-elicitation-request"`) {
				t.Errorf("the client has seen %q", got.Asked)
			}
		})
	}
}

// answered runs a client.
func answered(t *testing.T, argv []string, more ...string) (a answering) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	argv = append(argv, more...)
	var stderr strings.Builder
	client := exec.CommandContext(ctx, argv[0], argv[1:]...)
	client.Stderr = &stderr
	out, err := client.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	fine(t, json.Unmarshal(out, &a))
	a.Output = strings.TrimSpace(a.Output)
	return a
}
