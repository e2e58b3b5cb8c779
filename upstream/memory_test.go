package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/state"
)

func openState(t testing.TB, path string) *state.Dir {
	t.Helper()
	d, err := state.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// hang is a server that never answers.
func hang(ctx context.Context) (mcp.Transport, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// gate is a server that begins to answer when open is closed.
func gate(open <-chan struct{}, dial func(context.Context) (mcp.Transport, error)) func(context.Context) (mcp.Transport, error) {
	return func(ctx context.Context) (mcp.Transport, error) {
		select {
		case <-open:
			return dial(ctx)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func issuesServer(schema, text string) *mcptest.Upstream {
	return mcptest.New(mcptest.Tool{Name: "list_issues", ReadOnly: true, Schema: schema, Text: text})
}

const (
	issuesSchema = `{"type":"object","properties":{"state":{"type":"string"}}}`
	issuesText   = `{"items":[{"number":1,"labels":["planted-label"],"email":null}],"next_page":2}`
	issuesShape  = `{items: [{number: int, labels: [str], email: null}], next_page: int}`
)

// callIssues calls the tool on a pool of its own, which keeps its state in dir.
func callIssues(t *testing.T, dir, schema, text string) {
	t.Helper()
	p := upstream.NewPool(upstream.Options{
		Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: issuesServer(schema, text).Dial}}}, State: openState(t, dir),
	})
	if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "list_issues"}); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func shapeOf(l upstream.Listing) string {
	if len(l.Tools) != 1 {
		return fmt.Sprintf("%d tools", len(l.Tools))
	}
	if l.Tools[0].Result == nil {
		return "unknown"
	}
	return l.Tools[0].Result.Brief(300)
}

// TestStateOutlivesTheProcess: what one gateway has learned the next one tells at once, before its server answers and
// before any call; it adds to it, and forgets it when the schema is another one.
func TestStateOutlivesTheProcess(t *testing.T) {
	dir := t.TempDir()
	callIssues(t, dir, issuesSchema, issuesText)

	opened := make(chan struct{})
	p := staticPool(t, upstream.Options{State: openState(t, dir)}, upstream.Server{Name: "s", Dial: gate(opened, issuesServer(issuesSchema, issuesText).Dial)})
	l := p.Catalog(t.Context())[0]
	if l.Status != upstream.StatusStarting || shapeOf(l) != issuesShape {
		t.Errorf("before the server answers: %s, %v, %s", l.Status, l.Err, shapeOf(l))
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Tool(short, "s", "list_issues"); err == nil {
		t.Error("a plan was made from an earlier list")
	}
	close(opened)
	eventually(t, "the server is ready", func() bool { return p.Catalog(t.Context())[0].Status == upstream.StatusReady })

	callIssues(t, dir, issuesSchema, `{"items":[],"next_page":null,"total_count":0}`)
	more := `{items: [{number: int, labels: [str], email: null}], next_page: int|null, total_count?: int}`
	if got := shapeOf(startedPool(t, dir, issuesSchema).Catalog(t.Context())[0]); got != more {
		t.Errorf("after another call: got %s, want %s", got, more)
	}
	other := `{"type":"object","properties":{"state":{"type":"integer"}}}`
	p = startedPool(t, dir, other)
	if got := shapeOf(p.Catalog(t.Context())[0]); got != "unknown" {
		t.Errorf("with another schema: got %s", got)
	}
	callIssues(t, dir, other, `[1]`)
	if got := shapeOf(startedPool(t, dir, other).Catalog(t.Context())[0]); got != "[int]" {
		t.Errorf("learned anew: got %s", got)
	}
}

// TestWritingIsNoOtherSchema: a tool whose schema has characters that our files escape is known again before its server
// answers.
func TestWritingIsNoOtherSchema(t *testing.T) {
	schema := `{"type":"object","properties":{"state":{"type":"string","description":"<name> & more\u2028"}}}`
	dir := t.TempDir()
	callIssues(t, dir, schema, issuesText)
	p := staticPool(t, upstream.Options{State: openState(t, dir)}, upstream.Server{Name: "s", Dial: hang})
	if got := shapeOf(p.Catalog(t.Context())[0]); got != issuesShape {
		t.Errorf("got %s, want %s", got, issuesShape)
	}
}

// startedPool is a pool that has its server's own list.
func startedPool(t *testing.T, dir, schema string) *upstream.Pool {
	t.Helper()
	p := staticPool(t, upstream.Options{State: openState(t, dir)}, upstream.Server{Name: "s", Dial: issuesServer(schema, "").Dial})
	if _, err := p.Tool(t.Context(), "s", "list_issues"); err != nil {
		t.Fatal(err)
	}
	return p
}

// planted are values that are not to be found on disk, wherever they stand in a result.
var planted = []string{"alicia.secretperson", "hunter2xyzzy", "9007199254740993", "Zürichstrasse", "c-000-777", "xoxb"}

// plantedResults hold all of them as values, as keys, in text and in errors.
func plantedResults() []string {
	var results []string
	for _, p := range planted {
		quoted, _ := json.Marshal(p)
		results = append(results,
			fmt.Sprintf(`{"id":%[1]s,"users":{%[1]s:{"name":%[1]s}},%[1]s:1}`, quoted),
			fmt.Sprintf(`{"id":1,%[1]s:{"status":%[1]s},"items":[{%[1]s:[%[1]s]}]}`, quoted),
			fmt.Sprintf(`{%s:1}`, quoted), fmt.Sprintf(`[%s]`, quoted), string(quoted),
			fmt.Sprintf("INFO user %s logged in\n%s: x\nstatus: %s\nuser=%s\n", p, p, p, p),
			fmt.Sprintf("# %s\n| %s | 1 |\n[%s] (%s)\n", p, p, p, p), p, fmt.Sprintf("{\"id\":1,%s", quoted),
		)
	}
	return results
}

// TestNoValueOnDisk: no value of any result, and no key of one that is none of the words that everybody knows, is in any
// file of the state directory.
func TestNoValueOnDisk(t *testing.T) {
	dir := t.TempDir()
	results := plantedResults()
	var tools []mcptest.Tool
	for i, text := range results {
		tools = append(tools, mcptest.Tool{Name: fmt.Sprint("text", i), Text: text},
			mcptest.Tool{Name: fmt.Sprint("structured", i), Raw: func(context.Context, json.RawMessage) (string, error) {
				quoted, err := json.Marshal(map[string]any{"data": text, "id": 1})
				return fmt.Sprintf(`{"content":[],"structuredContent":%s}`, quoted), err
			}},
			mcptest.Tool{Name: fmt.Sprint("fails", i), Do: func(map[string]any) (string, error) { return "", errors.New(text) }})
	}
	p := upstream.NewPool(upstream.Options{
		Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: mcptest.New(tools...).Dial}}}, State: openState(t, dir),
	})
	for _, tool := range tools {
		if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: tool.Name}); (err != nil) != (tool.Do != nil) {
			t.Errorf("%s: %v", tool.Name, err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	found := 0
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, path))
		found++
		for _, p := range planted {
			if strings.Contains(strings.ToLower(string(b)), strings.ToLower(p)) {
				t.Errorf("%s holds %q", path, p)
			}
		}
		return err
	})
	if err != nil || found != 4 {
		t.Errorf("%d files, %v; want the tools, the shapes and the pins of one server, and the lock of pins", found, err)
	}
	known := 0
	for name, l := range openState(t, dir).Shapes(state.Key{Server: "s"}) {
		if l.Result.Known() && !strings.HasPrefix(name, "fails") {
			known++
		}
	}
	if known < len(results) {
		t.Errorf("only %d shapes of %d were kept", known, 2*len(results))
	}
}

// TestHungServerIsWaitedForOnce: who has waited for a server in vain has done so for all who come later.
func TestHungServerIsWaitedForOnce(t *testing.T) {
	opened := make(chan struct{})
	good := mcptest.New(mcptest.Tool{Name: "hi", Text: "hi"})
	p := staticPool(t, upstream.Options{}, upstream.Server{Name: "good", Dial: good.Dial}, upstream.Server{Name: "late", Dial: gate(opened, good.Dial)})
	if l := p.Catalog(t.Context(), "good")[0]; l.Status != upstream.StatusReady {
		t.Fatalf("good is %s: %v", l.Status, l.Err)
	}
	first, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for i, ctx := range []context.Context{first, t.Context(), t.Context()} { // the later ones would wait for good
		ls := p.Catalog(ctx)
		if ls[0].Status != upstream.StatusReady || ls[1].Status != upstream.StatusStarting || ls[1].Err == nil || len(ls[1].Tools) != 0 {
			t.Errorf("listing %d: good is %s, late is %s with %v", i, ls[0].Status, ls[1].Status, ls[1].Err)
		}
	}
	close(opened)
	eventually(t, "the late server is listed", func() bool {
		l := p.Catalog(t.Context(), "late")[0]
		return l.Status == upstream.StatusReady && len(l.Tools) == 1
	})
}

// TestColdAndWarmStart: of twenty servers one is dead and one hangs. The others can be used as soon as they are there;
// and after a restart all that were there before are listed without waiting for any.
func TestColdAndWarmStart(t *testing.T) {
	t.Parallel() // it waits
	dir := t.TempDir()
	dead := func(context.Context) (mcp.Transport, error) { return nil, errors.New("no such program") }
	servers := func(open <-chan struct{}) []upstream.Server {
		list := []upstream.Server{{Name: "dead", Dial: dead}, {Name: "hangs", Dial: hang}}
		for i := range 18 {
			s := mcptest.New(mcptest.Tool{Name: "hi", ReadOnly: true, Text: "hi"})
			list = append(list, upstream.Server{Name: fmt.Sprintf("ok%02d", i), Dial: gate(open, s.Dial)})
		}
		return list
	}
	opened := make(chan struct{})
	cold := upstream.NewPool(upstream.Options{Sources: []upstream.Source{upstream.Static(servers(opened))}, State: openState(t, dir)})
	defer cold.Close()
	listed := make(chan []upstream.Listing)
	waiting, cancel := context.WithCancel(t.Context())
	go func() { listed <- cold.Catalog(waiting) }()
	close(opened)
	for i := range 18 { // while the listing still waits for the one that hangs
		res, err := cold.CallTool(t.Context(), stages.Call{Server: fmt.Sprintf("ok%02d", i), Name: "hi"})
		if err != nil || string(res.Data) != "hi" {
			t.Errorf("got %q, %v", res.Data, err)
		}
	}
	cancel()
	wantStatuses(t, <-listed, upstream.StatusReady)
	if err := cold.Close(); err != nil {
		t.Fatal(err)
	}

	warm := staticPool(t, upstream.Options{State: openState(t, dir)}, servers(nil)...) // no server answers any more
	wantStatuses(t, warm.Catalog(t.Context()), upstream.StatusStarting)                // the one that was never there holds nothing up
	names := make([]string, 18)
	for i := range names {
		names[i] = fmt.Sprintf("ok%02d", i)
	}
	for _, l := range warm.Catalog(t.Context(), names...) { // would wait for good
		if len(l.Tools) != 1 || l.Tools[0].Result == nil {
			t.Errorf("%s: %d tools", l.Server, len(l.Tools))
		}
	}
}

func wantStatuses(t *testing.T, ls []upstream.Listing, ok string) {
	t.Helper()
	for _, l := range ls {
		want, tools := ok, 1
		switch l.Server {
		case "dead":
			want, tools = upstream.StatusFailed, 0
		case "hangs":
			want, tools = upstream.StatusStarting, 0
		}
		if l.Status != want || len(l.Tools) != tools {
			t.Errorf("%s is %s with %d tools, want %s with %d (%v)", l.Server, l.Status, len(l.Tools), want, tools, l.Err)
		}
	}
}

// TestProbe: where the operator wants it, tools that only read and need nothing are called once, and no others.
func TestProbe(t *testing.T) {
	dir := t.TempDir()
	needs := `{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}`
	for i, want := range []map[string]int{
		{"list": 1, "fails": 1, "write": 0, "get": 0, "declared": 0, "forbidden": 0},
		{"list": 0, "fails": 1, "write": 0, "get": 0, "declared": 0, "forbidden": 0}, // what is known already is not asked for again
	} {
		s := mcptest.New(
			mcptest.Tool{Name: "list", ReadOnly: true, Text: `{"total":1}`}, mcptest.Tool{Name: "write", Text: "x"},
			mcptest.Tool{Name: "get", ReadOnly: true, Schema: needs, Text: "x"}, mcptest.Tool{Name: "forbidden", ReadOnly: true, Text: "x"},
			mcptest.Tool{Name: "declared", ReadOnly: true, Text: "1", OutputSchema: `{"type":"object","properties":{"n":{"type":"integer"}}}`},
			mcptest.Tool{Name: "fails", ReadOnly: true, Do: func(map[string]any) (string, error) { return "", errors.New("no") }},
		)
		p := upstream.NewPool(upstream.Options{
			Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: s.Dial, Probe: true, Deny: []string{"forbidden"}}}}, State: openState(t, dir),
		})
		p.Catalog(t.Context())
		eventually(t, "the probes have been made", func() bool {
			for _, tool := range p.Catalog(t.Context())[0].Tools {
				if tool.Name == "list" && tool.Result == nil {
					return false
				}
			}
			return s.Calls("fails") == 1
		})
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		for tool, n := range want {
			if got := s.Calls(tool); got != n {
				t.Errorf("process %d: %s was called %d times, want %d", i, tool, got, n)
			}
		}
	}
}

// TestStateThatCannotBeWritten costs nobody a result, and the listing says so.
func TestStateThatCannotBeWritten(t *testing.T) {
	dir := openState(t, t.TempDir())
	dir.Close()
	p := staticPool(t, upstream.Options{State: dir}, upstream.Server{Name: "s", Dial: issuesServer(issuesSchema, issuesText).Dial})
	if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "list_issues"}); err != nil {
		t.Error(err)
	}
	eventually(t, "the shape is known", func() bool { return shapeOf(p.Catalog(t.Context())[0]) == issuesShape })
	if l := p.Catalog(t.Context())[0]; !strings.Contains(l.Note, "its tool list is not saved for the next start") {
		t.Errorf("the note is %q", l.Note)
	}
}

// BenchmarkCallsThatTeach compares calls of a tool with a result of 1 MB whose shape is learned with calls of one whose
// output schema tells it. Both are what a run waits for; what is learned behind shows as CPU only.
func BenchmarkCallsThatTeach(b *testing.B) {
	var text strings.Builder
	for i := 0; text.Len() < 1<<20; i++ {
		fmt.Fprintf(&text, "{\"id\":%d,\"name\":\"item %d\",\"tags\":[\"a\",\"b\"]}\n", i, i)
	}
	for name, schema := range map[string]string{"learned": "", "declared": `{"type":"object","properties":{"id":{"type":"integer"}}}`} {
		b.Run(name, func(b *testing.B) {
			s := mcptest.New(mcptest.Tool{Name: "list", ReadOnly: true, OutputSchema: schema, Text: text.String()})
			p := mcptest.NewPool(b, upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: s.Dial}}}, State: openState(b, b.TempDir())})
			b.SetBytes(1 << 20)
			for b.Loop() {
				if _, err := p.CallTool(b.Context(), stages.Call{Server: "s", Name: "list"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
