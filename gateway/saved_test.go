package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// savedWorld is a world with saved pipelines.
type savedWorld struct {
	*world
	dir  string
	set  *pipelines.Set
	mu   sync.Mutex
	said []string // what was added: guarded by mu
}

// noting is a tool that notes what it is given, and fails for what contains "bad".
func (w *savedWorld) noting(name string, tool mcptest.Tool) mcptest.Tool {
	tool.Name = name
	tool.Schema = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`
	tool.Do = func(args map[string]any) (string, error) {
		text := fmt.Sprint(args["text"])
		if strings.Contains(text, "bad") {
			return "", fmt.Errorf("no such thing as %s", text)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.said = append(w.said, text)
		return fmt.Sprintf(`{"noted":%q}`, text), nil
	}
	return tool
}

func (w *savedWorld) noted() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.said)
}

const long = 60 * time.Second // for conditions on a loaded machine

// newSavedWorld makes a world with files. Of each the text has description and pipeline, or is a whole file.
func newSavedWorld(t *testing.T, kept *runs.Store, change func(*gateway.Options), files map[string]string) *savedWorld {
	t.Helper()
	w := &savedWorld{dir: t.TempDir()}
	for name, text := range files {
		w.write(t, name, text)
	}
	shop := mcptest.New(append(shopTools(), w.noting("add", mcptest.Tool{Destructive: true}), w.noting("put", mcptest.Tool{Idempotent: true}),
		mcptest.Tool{Name: "hang", Latency: 10 * time.Minute, Text: "late"})...)
	w.world = &world{shop: shop, pool: mcptest.Pool(t, map[string]*mcptest.Upstream{"shop": shop, "empty": mcptest.New()})}
	box := sharedSandbox(t)
	deps := stages.Deps{Tools: w.pool, Commands: box, Schemas: schemas.Stages()}
	w.set = pipelines.NewSet(pipelines.NewStore(w.dir), deps, w.pool.Generation)
	o := gateway.Options{Upstream: w.pool, Sandbox: ready{box}, Kept: kept, Version: "test", Pipelines: w.set, PipelineTools: "all"}
	if change != nil {
		change(&o)
	}
	w.gateway = gateway.New(o)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		w.gateway.Close(ctx)
	})
	w.agent = connect(t, w.gateway, newClient())
	return w
}

// write writes a file whole.
func (w *savedWorld) write(t *testing.T, name, text string) {
	t.Helper()
	if !strings.HasPrefix(text, "{") {
		text = `{"description": "It is ` + name + `.", ` + text + `}`
	}
	tmp := filepath.Join(w.dir, "."+name+".tmp")
	if err := os.WriteFile(tmp, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(tmp, filepath.Join(w.dir, name+".json")); err != nil {
		t.Fatal(err)
	}
}

// runStage runs one saved pipeline as a stage.
func (w *savedWorld) runStage(t *testing.T, name, args string) (string, *mcp.CallToolResult) {
	t.Helper()
	return w.output(t, fmt.Sprintf(`[{"type":"tool","server":"pipelines","name":%q,"args":%s}]`, name, args))
}

const (
	one     = `"parameters":{"type":"object","properties":{"x":{}}},`
	addAll  = one + `"pipeline":[{"type":"tool","server":"shop","name":"add","args":{"text":{"$param":"x"}}}]`
	jqOf    = one + `"pipeline":[{"type":"command","command":"jq","args":["-n","-c","$params.x"]}]`
	grep    = one + `"pipeline":[{"type":"tool","server":"shop","name":"list_orders"},{"type":"command","command":"grep","args":["-c",{"$param":"x"}]}]`
	oneItem = `"parameters":{"type":"object","properties":{"id":{"type":"integer"},"limit":{"type":"integer"}},"required":["id"]},"pipeline":[{"type":"tool","server":"shop","name":"get_item","args":{"id":{"$param":"id"}}},{"type":"command","command":"jq","args":["-c","{id, given: $params}"]}]`
)

// TestSavedValues: parameters are values, whatever they look like. A case that fails calls nothing.
func TestSavedValues(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("x", 100<<10) // more than any command takes
	w := newSavedWorld(t, nil, nil, map[string]string{
		"add": addAll, "jq": jqOf, "grep": grep,
		"head":    one + `"pipeline":[{"type":"tool","server":"shop","name":"list_orders"},{"type":"command","command":"jq","args":["-c",".[]"]},{"type":"command","command":"head","args":["-n",{"$param":"x"}]}]`,
		"program": one + `"pipeline":[{"type":"command","command":"jq","args":["-n",{"$param":"x"}]}]`,
		"sed":     one + `"pipeline":[{"type":"command","command":"sed","args":["-e",{"$param":"x"}]}]`,
		"pattern": one + `"pipeline":[{"type":"tool","server":"shop","name":"list_orders"},{"type":"command","command":"grep","args":["-c","-e",{"$param":"x"}]}]`,
		"input":   one + `"pipeline":[{"type":"tool","server":"shop","name":"list_orders"},{"type":"command","command":"join","args":["-",{"$param":"x"}],"inputs":{"b":[{"type":"command","command":"jq","args":["-n","1"]}]}}]`,
		"named":   one + `"pipeline":[{"type":"command","command":"jq","args":["-n","-c","[$v, ($v|type)]","--arg","v",{"$param":"x"}]}]`,
		"deep":    one + `"pipeline":[{"type":"tool","server":"shop","name":"echo","args":{"a":[1,{"$param":"x"},{"b":{"$param":"x"}}],"l":{"$literal":{"$param":"x"}},"k":{"$literal":{"$literal":1}}}}]`,
		"absent":  `"parameters":{"type":"object","properties":{"x":{},"y":{"default":7}}},"pipeline":[{"type":"tool","server":"shop","name":"echo","args":{"a":[1,{"$param":"x"}],"x":{"$param":"x"},"y":{"$param":"y"}}}]`,
		"names":   `"parameters":{"type":"object","properties":{"a.b":{"type":"string"},"a-b":{"type":"integer","minimum":2}}},"pipeline":[{"type":"command","command":"jq","args":["-n","-c","[$params[\"a.b\"], $params.\"a-b\"]"]}]`,
		"all":     `"parameters":{"type":"object","properties":{"x":{},"y":{"default":[1]}}},"pipeline":[{"type":"command","command":"jq","args":["-n","-c","$params"]}]`,
		"choice":  `"parameters":{"type":"object","properties":{"x":{"enum":["open","closed"],"default":"open"}}},"pipeline":[{"type":"tool","server":"shop","name":"list_orders","args":{"status":{"$param":"x"}}},{"type":"command","command":"jq","args":["length"]}]`,
	})
	w.shop.Add(mcptest.Tool{Name: "echo", ReadOnly: true, Raw: func(_ context.Context, args json.RawMessage) (string, error) {
		text, err := json.Marshal(string(args))
		return fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, text), err
	}})
	for _, c := range []struct {
		name, args string
		want       string // the output
		fails      string // or a part of the error
	}{
		{"add", `{"x":"plain"}`, `{"noted":"plain"}`, ""},
		{"add", `{"x":"$params.x"}`, `{"noted":"$params.x"}`, ""},
		{"add", `{"x":"{\"$param\": \"x\"}"}`, `{"noted":"{\"$param\": \"x\"}"}`, ""},
		{"add", `{"x":"\"},\"evil\":{\""}`, `{"noted":"\"},\"evil\":{\""}`, ""},
		{"add", `{"x":{"$param":"x"}}`, "", "text must be a string"},
		{"add", `{"x":["a"]}`, "", "text must be a string"},
		{"add", `{"x":null}`, "", "text must be a string"},
		{"add", `{"x":7}`, "", "text must be a string"},
		{"add", `{}`, "", `text`},
		{"add", `{"X":"a"}`, "", `unknown field \"X\"`},
		{"add", `{"x":"a","y":1}`, "", `unknown field \"y\"`},
		{"jq", `{"x":"a"}`, `"a"`, ""},
		{"jq", `{"x":"\" | env | halt_error"}`, `"\" | env | halt_error"`, ""},
		{"jq", `{"x":"\\(1+1)"}`, `"\\(1+1)"`, ""},
		{"jq", `{"x":"--from-file"}`, `"--from-file"`, ""},
		{"jq", `{"x":{"a":[1.50,"–",null]}}`, `{"a":[1.50,"–",null]}`, ""},
		{"jq", `{"x":9007199254740993}`, `9007199254740993`, ""},
		{"jq", `{"x":"` + strings.Repeat("y", 1000) + `"}`, `"` + strings.Repeat("y", 1000) + `"`, ""},
		{"jq", `{"x":"` + huge + `"}`, "", "the arguments take"},
		{"jq", `{}`, `null`, ""},
		{"grep", `{"x":"customer"}`, "1", ""},
		{"grep", `{"x":"-v"}`, "0", ""},
		{"grep", `{"x":"--version"}`, "0", ""},
		{"grep", `{"x":"-f/etc/passwd"}`, "0", ""},
		{"grep", `{"x":"-"}`, "0", ""},
		{"grep", `{"x":""}`, "1", ""},
		{"grep", `{"x":true}`, "0", ""},
		{"grep", `{"x":9007199254740993}`, "1", ""},
		{"grep", `{"x":{"a":1}}`, "", "want a string, a number, true or false"},
		{"grep", `{"x":["-v"]}`, "", "want a string, a number, true or false"},
		{"grep", `{"x":null}`, "", "want a string, a number, true or false"},
		{"grep", `{"x":"a\u0000b"}`, "", "NUL"},
		{"grep", `{"x":"` + huge + `"}`, "", "the arguments take"},
		{"grep", `{}`, "", "the pattern is missing"},
		{"pattern", `{"x":"-v"}`, "0", ""},
		{"pattern", `{"x":"customer"}`, "1", ""},
		{"head", `{"x":1}`, `{"customer_id":9007199254740993,"id":1,"total":3.50}`, ""},
		{"head", `{"x":"1; cat"}`, "", "DISALLOWED_ARGUMENT"},
		{"head", `{"x":"--version"}`, "", "DISALLOWED_ARGUMENT"},
		{"program", `{"x":"1+1"}`, "", "cannot be the program of jq"},
		{"sed", `{"x":"s/a/b/"}`, "", "cannot be the program of sed"},
		{"input", `{"x":"@b"}`, "", "the name of an input"},
		{"named", `{"x":"-n"}`, `["-n","string"]`, ""},
		{"named", `{"x":"/etc/passwd"}`, `["/etc/passwd","string"]`, ""},
		{"deep", `{"x":{"z":"é"}}`, `{"a":[1,{"z":"é"},{"b":{"z":"é"}}],"l":{"$param":"x"},"k":{"$literal":1}}`, ""},
		{"absent", `{}`, `{"a":[1],"y":7}`, ""},
		{"absent", `{"x":null,"y":"8"}`, `{"a":[1,null],"x":null,"y":"8"}`, ""},
		{"names", `{"a.b":"Ж","a-b":2}`, `["Ж",2]`, ""},
		{"names", `{"a-b":1}`, "", "a-b must be at least 2"},
		{"all", `{}`, `{"y":[1]}`, ""},
		{"all", `{"x":"-x"}`, `{"x":"-x","y":[1]}`, ""},
		{"choice", `{}`, `2`, ""},
		{"choice", `{"x":"OPEN"}`, "", `must be one of`},
	} {
		args := c.args
		label := c.name + " " + args[:min(len(args), 60)]
		calls := w.shop.Calls()
		got, result := w.runStage(t, c.name, args)
		got = strings.TrimSuffix(got, "\n")
		switch {
		case c.fails == "" && (result.IsError || !equalJSON(got, c.want)):
			t.Errorf("%s: got %.300s, want %.300s", label, got, c.want)
		case c.fails != "" && (!result.IsError || !strings.Contains(strings.ReplaceAll(got, `"`, `\"`), strings.ReplaceAll(strings.ReplaceAll(c.fails, `\"`, `"`), `"`, `\"`))):
			t.Errorf("%s: got %.400s, want an error with %s", label, got, c.fails)
		case c.fails != "" && w.shop.Calls() != calls:
			t.Errorf("%s: it failed, and something was called", label)
		case len(got) > 20_000:
			t.Errorf("%s: the reply has %d bytes", label, len(got))
		}
	}
}

// equalJSON compares values, and texts that are not JSON.
func equalJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return a == b
	}
	return fmt.Sprint(x) == fmt.Sprint(y)
}

// TestSavedEffects: the effects of a plan are those of its tools, in lists and in runs: an effect waits, and a dry run calls none.
func TestSavedEffects(t *testing.T) {
	w := newSavedWorld(t, nil, nil, map[string]string{
		"reads": oneItem,
		"adds":  addAll,
		"puts":  one + `"pipeline":[{"type":"tool","server":"shop","name":"put","args":{"text":{"$param":"x"}}}]`,
		"both":  one + `"pipeline":[{"type":"tool","server":"pipelines","name":"reads","args":{"id":1}},{"type":"tool","server":"pipelines","name":"adds","args":{"x":{"$param":"x"}}}]`,
	})
	hints := map[string]string{}
	for tool, err := range w.agent.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if a := tool.Annotations; a != nil {
			text, _ := json.Marshal(a)
			hints[tool.Name] = string(text)
		}
	}
	for name, want := range map[string]string{
		"reads": `{"readOnlyHint":true}`,
		"adds":  `{"destructiveHint":true,"readOnlyHint":false}`,
		"puts":  `{"destructiveHint":true,"idempotentHint":true,"readOnlyHint":false}`,
		"both":  `{"destructiveHint":true,"readOnlyHint":false}`,
	} {
		if !equalHints(hints[name], want) {
			t.Errorf("%s has the annotations %s, want %s", name, hints[name], want)
		}
	}
	plan := `[{"type":"tool","server":"shop","name":"get_item","args":{"id":13}},{"type":"tool","server":"pipelines","name":"adds","args":{"x":"after"}}]`
	if text, result := w.execute(t, plan); !result.IsError || len(w.noted()) > 0 {
		t.Errorf("behind a failure: noted %q, got %s", w.noted(), text)
	}
	text, result := w.execute(t, `[{"type":"tool","server":"pipelines","name":"both","args":{"x":"dry"}}]`, "mode", "dry_run")
	if result.IsError || len(w.noted()) > 0 || !strings.Contains(text, "pipelines/both") {
		t.Errorf("a dry run noted %q and said %s", w.noted(), text)
	}
	if _, result := w.execute(t, `[{"type":"tool","server":"pipelines","name":"both","args":{"x":"now"}}]`); result.IsError || !slices.Equal(w.noted(), []string{"now"}) {
		t.Errorf("noted %q", w.noted())
	}
}

func equalHints(a, b string) bool {
	var x, y map[string]bool
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && x["readOnlyHint"] == y["readOnlyHint"] &&
		x["destructiveHint"] == y["destructiveHint"] && x["idempotentHint"] == y["idempotentHint"]
}

// reportOf is the report of a reply.
func reportOf(t *testing.T, result *mcp.CallToolResult) (r struct {
	Run    string        `json:"run"`
	Stages []nestedStage `json:"stages"`
},
) {
	t.Helper()
	raw, err := json.Marshal(result.Meta["mcsh/report"])
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type nestedStage struct {
	Stage                                               string
	Label                                               string
	Items, Calls, Refused, Unknown, OK, Failed, Resumed int
	Changes                                             bool
	Stages                                              []nestedStage
}

// TestSavedForEach: a for_each over a saved pipeline has its failures, a report within the report, and goes on where it ended
// without a second effect.
func TestSavedForEach(t *testing.T) {
	kept := runs.New(runs.Options{Dir: t.TempDir()})
	defer kept.Close()
	w := newSavedWorld(t, kept, nil, map[string]string{
		"adds":  addAll,
		"twice": one + `"pipeline":[{"type":"tool","server":"shop","name":"add","args":{"text":{"$param":"x"}}},{"type":"command","command":"jq","args":["-r",".noted + \"bad\""]},{"type":"tool","server":"shop","name":"add"}]`,
	})
	list := func(values string) string {
		return fmt.Sprintf(`{"type":"command","command":"jq","args":["-n","-c",%q]}`, values)
	}
	each := `{"type":"tool","server":"pipelines","name":"adds","for_each":true,"on_error":"collect","with_item":true}`
	text, result := w.output(t, "["+list(`["a","bad","c"][] | {x: .}`)+","+each+"]")
	if result.IsError || !strings.Contains(text, "no such thing as bad") || !strings.Contains(text, "pipelines/adds") {
		t.Errorf("got %s", text)
	}
	if noted := w.noted(); len(noted) != 2 {
		t.Errorf("noted %q", noted)
	}
	s := reportOf(t, result).Stages[1]
	if s.OK != 2 || s.Failed != 1 || s.Calls != 3 || len(s.Stages) != 1 || s.Stages[0].Calls != 3 || s.Stages[0].Stage != "2.1" || s.Stages[0].Refused != 1 {
		t.Errorf("the report is %+v", s)
	}

	// The second item fails; what has run is not run again.
	plan := "[" + list(`["d","bad","f"][] | {x: .}`) + `,{"type":"tool","server":"pipelines","name":"adds","for_each":true,"concurrency":1}]`
	text, result = w.execute(t, plan)
	if !result.IsError {
		t.Fatalf("got %s", text)
	}
	before, run := w.noted(), reportOf(t, result).Run
	calls := w.shop.Calls("add") // of these the tool has refused the last, which changes nothing
	text, _ = w.execute(t, fmt.Sprintf(`[{"type":"from","run":%q,"resume":true}]`, run))
	if after := w.noted(); len(after) != len(before) || !slices.Contains(after, "d") || w.shop.Calls("add") != calls+1 {
		t.Errorf("noted %q and then %q: %s", before, after, text)
	}

	// A failure behind an effect leaves the outcome unknown: the call is not made again.
	text, result = w.execute(t, `[{"type":"tool","server":"pipelines","name":"twice","args":{"x":"once"}}]`)
	s = reportOf(t, result).Stages[0]
	if !result.IsError || s.Unknown != 1 || !strings.Contains(text, "stage 3") || !strings.Contains(text, "shop/add") {
		t.Errorf("got %s, the report is %+v", text, s)
	}
	text, _ = w.execute(t, fmt.Sprintf(`[{"type":"from","run":%q,"resume":true}]`, reportOf(t, result).Run))
	if n := len(slices.DeleteFunc(w.noted(), func(s string) bool { return s != "once" })); n != 1 || !strings.Contains(text, "not called again") {
		t.Errorf("the effect was made %d times: %s", n, text)
	}
}

// TestSavedCancelled: the end of a run ends the pipelines within it, and so does the timeout of the stage.
func TestSavedCancelled(t *testing.T) {
	w := newSavedWorld(t, nil, nil, map[string]string{"waits": `"pipeline":[{"type":"tool","server":"shop","name":"slow"}]`})
	text, result := w.runStage(t, "waits", `{},"timeout":0.2`)
	if !result.IsError || !strings.Contains(text, "TIMEOUT") || !strings.Contains(text, "waits") {
		t.Errorf("got %s", text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := w.agent.CallTool(ctx, &mcp.CallToolParams{Name: "waits"})
		ended <- err
	}()
	await(t, "the call within", func() bool { return w.shop.Running() > 0 })
	cancel()
	<-ended
	await(t, "the end of the call within", func() bool { return w.shop.Running() == 0 })
}

// await waits for a condition.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(long); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// TestSavedBroken: a tool that changes breaks the pipelines that call it and leaves the others. They say so, and run nothing.
func TestSavedBroken(t *testing.T) {
	changed := make(chan struct{}, 100)
	w := newSavedWorld(t, nil, nil, map[string]string{
		"adds": addAll, "reads": oneItem,
		"outer":  one + `"pipeline":[{"type":"tool","server":"pipelines","name":"adds","args":{"x":{"$param":"x"}}}]`,
		"circle": `"pipeline":[{"type":"tool","server":"pipelines","name":"round"}]`,
		"round":  `"pipeline":[{"type":"tool","server":"pipelines","name":"circle"}]`,
		"typo":   `"pipeline":[{"type":"tool","server":"shop","name":"get_itm"}]`,
		"wrong":  `"pipelin":[]`,
	})
	w.agent = connect(t, w.gateway, mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
	}))
	follow, end := context.WithCancel(t.Context())
	defer end()
	go w.set.Follow(follow, func(pipelines.Change) { w.gateway.PipelinesChanged() })
	state := func() (all []string) {
		for _, tool := range w.set.Tools(t.Context(), pipelines.Operator()) {
			if tool.Broken != nil {
				all = append(all, tool.Name)
			}
		}
		return all
	}
	if got, want := state(), []string{"circle", "round", "typo", "wrong"}; !slices.Equal(got, want) {
		t.Fatalf("broken are %q, want %q", got, want)
	}
	for name, why := range map[string]string{
		"circle": "circle calls round calls circle", "typo": `did you mean "get_item"`, "wrong": "wrong.json:1: pipelin: unknown key",
	} {
		text, result := w.runStage(t, name, "{}")
		if !result.IsError || !strings.Contains(text, why) {
			t.Errorf("%s: got %s, want %s", name, text, why)
		}
		if strings.Contains(text, w.dir) {
			t.Errorf("%s names a directory of the host: %s", name, text)
		}
		if text, _ := w.call(t, "list_all_tools", map[string]any{"server": "pipelines"}); !strings.Contains(text[0], "(broken: ") {
			t.Errorf("the list is %s", text)
		}
	}
	w.shop.Add(mcptest.Tool{Name: "add", Destructive: true, Schema: `{"type":"object","properties":{"note":{"type":"string"}},"required":["note"],"additionalProperties":false}`, Text: "ok"})
	await(t, "the change breaks adds and outer", func() bool {
		return slices.Equal(state(), []string{"adds", "circle", "outer", "round", "typo", "wrong"})
	})
	await(t, "adds is no tool any more", func() bool { return !slices.Contains(toolNames(t, w.agent), "adds") })
	<-changed
	if text, result := w.runStage(t, "reads", `{"id":1}`); result.IsError {
		t.Errorf("reads: %s", text)
	}
	if text, result := w.runStage(t, "outer", `{"x":"a"}`); !result.IsError || !strings.Contains(text, "adds") || w.shop.Calls("add") > 0 {
		t.Errorf("outer: %s", text)
	}
	w.shop.Add(w.noting("add", mcptest.Tool{Destructive: true}))
	await(t, "adds fits again", func() bool { return slices.Contains(toolNames(t, w.agent), "adds") })

	// Files are followed.
	w.write(t, "typo", oneItem)
	w.write(t, "fresh", oneItem)
	if err := os.Remove(filepath.Join(w.dir, "outer.json")); err != nil {
		t.Fatal(err)
	}
	await(t, "the files are read", func() bool {
		names := toolNames(t, w.agent)
		return slices.Contains(names, "typo") && slices.Contains(names, "fresh") && !slices.Contains(names, "outer")
	})
}

func toolNames(t *testing.T, agent *mcp.ClientSession) (names []string) {
	t.Helper()
	for tool, err := range agent.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

// TestSavedTool: as a tool of its own, a saved pipeline returns its output alone; one with an output schema has structured content
// or is an error.
func TestSavedTool(t *testing.T) {
	schema := `"outputSchema":{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]},`
	w := newSavedWorld(t, nil, nil, map[string]string{
		"plain": oneItem,
		"typed": `"parameters":{"type":"object","properties":{"p":{"type":"string"}},"required":["p"]},` + schema + `"pipeline":[{"type":"tool","server":"shop","name":"get_item","args":{"id":5}},{"type":"preview"},{"type":"command","command":"jq","args":["-c","if $params.p == \"good\" then {id} elif $params.p == \"text\" then \"x\" else {id: $params.p} end"]}]`,
		"_":     oneItem,
	})
	call := func(name, args string) (*mcp.CallToolResult, string) {
		_, result := w.call(t, name, json.RawMessage(args))
		var texts []string
		for _, c := range result.Content {
			texts = append(texts, c.(*mcp.TextContent).Text)
		}
		return result, strings.Join(texts, "|")
	}
	if result, text := call("plain", `{"id":4}`); result.IsError || text != `{"given":{"id":4},"id":4}`+"\n" {
		t.Errorf("got %q", text)
	}
	result, text := call("typed", `{"p":"good"}`)
	structured, _ := json.Marshal(result.StructuredContent)
	if result.IsError || string(structured) != `{"id":5}` || text != `{"id":5}`+"\n" {
		t.Errorf("got %s and %q", structured, text)
	}
	for _, args := range []string{`{"p":"text"}`, `{"p":"bad"}`} {
		if result, text := call("typed", args); !result.IsError || !strings.Contains(text, "outputSchema") || result.StructuredContent != nil {
			t.Errorf("%s: got %q", args, text)
		}
	}
	if result, text := call("typed", `{}`); !result.IsError || !strings.Contains(text, "INVALID_ARGUMENTS") {
		t.Errorf("got %q", text)
	}
	if _, err := w.agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "none_such"}); err == nil {
		t.Error("an unknown tool was called")
	}
}

// TestSavedPrivate: what an agent has saved is there for its own caller only, on every way to it.
func TestSavedPrivate(t *testing.T) {
	w := newSavedWorld(t, nil, func(o *gateway.Options) { o.PipelineTools = "*" }, map[string]string{"open": oneItem})
	ann, bob := w.as(t, "ann"), w.as(t, "bob")
	text := []byte(`{"description":"secret of ann","pipeline":[{"type":"tool","server":"shop","name":"list_orders"}]}`)
	if _, err := w.set.Store().Save(t.Context(), "mine", text, 0, pipelines.Author{Agent: true, Caller: "user ann"}); err != nil {
		t.Fatal(err)
	}
	sees := func(agent *mcp.ClientSession) (ways []string) {
		call := func(name string, args any) (string, bool) {
			result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
			if err != nil {
				return err.Error(), false
			}
			all, _ := json.Marshal(result.Content)
			return string(all), !result.IsError
		}
		stage := map[string]any{"pipeline": []any{map[string]any{"type": "tool", "server": "pipelines", "name": "mine"}}}
		version := map[string]any{"pipeline": []any{map[string]any{"type": "tool", "server": "pipelines", "name": "mine@1"}}}
		for way, c := range map[string]struct {
			tool string
			args any
			mark string
		}{
			"list":    {"list_all_tools", map[string]any{"server": "pipelines"}, "mine"},
			"search":  {"list_all_tools", map[string]any{"query": "secret of ann"}, "pipelines/mine"},
			"details": {"get_tool_details", map[string]any{"server": "pipelines", "tool_name": "mine"}, "secret"},
			"stage":   {"execute_pipeline", stage, "customer_id"},
			"version": {"execute_pipeline", version, "customer_id"},
			"tool":    {"mine", map[string]any{}, "customer_id"},
		} {
			if text, ok := call(c.tool, c.args); ok && strings.Contains(text, c.mark) {
				ways = append(ways, way)
			}
		}
		if slices.Contains(toolNames(t, agent), "mine") {
			ways = append(ways, "tools")
		}
		slices.Sort(ways)
		return ways
	}
	every := []string{"details", "list", "search", "stage", "tool", "tools", "version"}
	if got := sees(ann); !slices.Equal(got, every) {
		t.Errorf("its caller has it by %q, want %q", got, every)
	}
	if got := sees(bob); len(got) > 0 {
		t.Errorf("another caller has it by %q", got)
	}
	if _, err := w.set.Store().Adopt(t.Context(), "mine", 1); err != nil {
		t.Fatal(err)
	}
	if got := sees(bob); !slices.Equal(got, every) {
		t.Errorf("once it is adopted, another caller has it by %q, want %q", got, every)
	}
}

// as connects an agent with an identity, over HTTP.
func (w *savedWorld) as(t *testing.T, who string) *mcp.ClientSession {
	t.Helper()
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
	}
	server := httptest.NewServer(auth.RequireBearerToken(verify, nil)(gateway.WithDeadlines(w.gateway.Handler())))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	session, err := newClient().Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: server.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer(who)}, MaxRetries: -1,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// TestSavedLimits: what a saved pipeline uses counts for the run that calls it.
func TestSavedLimits(t *testing.T) {
	chain := func(next string) string {
		return one + `"pipeline":[{"type":"tool","server":"pipelines","name":"` + next + `","args":{"x":{"$param":"x"}}}]`
	}
	w := newSavedWorld(t, nil, func(o *gateway.Options) { o.Limits = stages.Limits{Calls: 7, Held: 1 << 20} }, map[string]string{
		"reads": oneItem, "d1": chain("d2"), "d2": chain("d3"), "d3": jqOf, "e1": chain("e2"), "e2": chain("e3"), "e3": chain("e4"), "e4": jqOf,
		"large": one + `"pipeline":[{"type":"tool","server":"shop","name":"large","args":{"id":{"$param":"x"}}}]`,
	})
	w.shop.Add(mcptest.Tool{Name: "large", ReadOnly: true, Schema: itemSchema, Do: func(args map[string]any) (string, error) {
		n, err := args["id"].(json.Number).Int64()
		return strings.Repeat("x", int(n)<<10), err
	}})
	each := func(n int, name string) string {
		return fmt.Sprintf(`[{"type":"command","command":"jq","args":["-n","-c","range(1;%d)|{id: .}"]},{"type":"tool","server":"pipelines","name":%q,"for_each":true,"distinct":false}]`, n+1, name)
	}
	for _, c := range []struct{ plan, fails string }{
		{each(3, "reads"), ""},
		{each(4, "reads"), "limit calls"},
		{`[{"type":"tool","server":"pipelines","name":"large","args":{"x":200}}]`, ""},
		{`[{"type":"tool","server":"pipelines","name":"large","args":{"x":700}}]`, "limit held"},
		{`[{"type":"tool","server":"pipelines","name":"d1","args":{"x":1}}]`, ""},
		{`[{"type":"tool","server":"pipelines","name":"e1","args":{"x":1}}]`, "limit nesting"},
		{`[{"type":"tool","server":"pipelines","name":"reads","args":{"id":1},"paginate":true}]`, "has no pages"},
	} {
		text, result := w.execute(t, c.plan)
		if result.IsError != (c.fails != "") || !strings.Contains(text, c.fails) {
			t.Errorf("%s: got %.400s, want %q", c.plan, text, c.fails)
		}
	}
}

// TestSavedAsks: a question of a server reaches the client also from within a saved pipeline, and its answer comes back.
func TestSavedAsks(t *testing.T) {
	store := pipelines.NewStore(t.TempDir())
	text := `{"description":"d","pipeline":[{"type":"tool","server":"shop","name":"buy","args":` + nameForm + `}]}`
	if _, err := store.Save(t.Context(), "asking", []byte(text), 0, pipelines.Author{}); err != nil {
		t.Fatal(err)
	}
	for era, connect := range ways {
		t.Run(era, func(t *testing.T) {
			set := pipelines.NewSet(store, stages.Deps{Tools: &curious{}, Schemas: schemas.Stages()}, unchanged)
			p := &person{answer: func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}, nil
			}}
			agent := connect(t, curiousGateway(t, gateway.Options{Pipelines: set}), p.client())
			if got := ran(t, agent, `[{"type":"tool","server":"pipelines","name":"asking"}]`); got != `{"action":"accept","content":{"name":"Ann"}}` {
				t.Errorf("got %s", got)
			}
			if len(p.seen) != 1 || !strings.HasPrefix(p.seen[0].Message, `The server "shop" asks for input in a call of its tool "buy"`) {
				t.Errorf("the client has seen %+v", p.seen)
			}
		})
	}
}

// TestSavedServer: the error of an unknown server names that of the saved pipelines, where the caller may know of one.
func TestSavedServer(t *testing.T) {
	t.Parallel()
	ours := map[string]string{"one": `{"description":"d","pipeline":[{"type":"tool","server":"shop","name":"get_item","args":{"id":1}}]}`}
	alone := map[string]string{"one": `{"description":"d","pipeline":[{"type":"preview"}]}`}
	for name, test := range map[string]struct {
		files map[string]string
		view  *upstream.View
		named bool
	}{
		"for everybody":        {ours, nil, true},
		"of servers of others": {ours, &upstream.View{}, false},
		"without servers":      {alone, &upstream.View{}, true},
		"none":                 {nil, nil, false},
	} {
		w := newSavedWorld(t, nil, nil, test.files)
		ctx := upstream.WithView(t.Context(), test.view)
		for _, server := range []string{"pipeline", "nobody"} {
			_, err := w.pool.Tool(ctx, server, "one")
			e, _ := errors.AsType[*stages.Error](err)
			if e == nil || e.Code != stages.UnknownServer || strings.Contains(e.Hint, `"pipelines"`) != test.named {
				t.Errorf("%s, %s: got %+v", name, server, err)
			}
		}
	}
	w := newSavedWorld(t, nil, nil, ours)
	for tool, args := range map[string]string{
		"execute_pipeline": `{"pipeline":[{"type":"tool","server":"pipeline","name":"one"}]}`, "get_tool_details": `{"tools":["pipeline/one"]}`,
	} {
		if text, _ := ask(t, w.agent, tool, args); !strings.Contains(text, `there is no server "pipeline"`) || !strings.Contains(text, `did you mean "pipelines"?`) {
			t.Errorf("%s: got %s", tool, text)
		}
	}
}

// TestSavedBesideSlow: saved pipelines are checked while the servers are listed, of which one may take all the time.
func TestSavedBesideSlow(t *testing.T) {
	w := &savedWorld{dir: t.TempDir()}
	w.write(t, "one", `{"description":"d","pipeline":[{"type":"preview"}]}`)
	checked := make(chan struct{})
	check := sync.OnceFunc(func() { close(checked) })
	set := pipelines.NewSet(pipelines.NewStore(w.dir), stages.Deps{}, func() uint64 { check(); return 1 })
	slow := func(context.Context, ...string) []upstream.Listing {
		select {
		case <-checked:
		case <-time.After(long):
			t.Error("the check waits for the list of the servers")
		}
		return []upstream.Listing{{Server: "shop"}}
	}
	list := gateway.Saved{Set: set, Viewer: pipelines.Operator()}.Catalog(t.Context(), slow)
	if len(list) != 2 || len(list[0].Tools) != 1 || list[1].Server != "shop" {
		t.Errorf("got %+v", list)
	}
}
