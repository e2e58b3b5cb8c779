package gateway_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// textDeps are servers as the texts for agents name them: orders in pages, and customers.
func textDeps(t *testing.T) (stages.Deps, *mcptest.Upstream) {
	t.Helper()
	regions := map[string]string{"c1": "north", "c2": "south", "c3": "north"}
	busy := map[string]bool{}
	shop := mcptest.New(
		mcptest.Tool{
			Name: "list_orders", ReadOnly: true,
			Schema: `{"type":"object","properties":{"status":{"type":"string"},"cursor":{"type":"string"}},"additionalProperties":false}`,
			Do: func(args map[string]any) (string, error) {
				page := map[string]string{"<nil>": `{"items":[{"customer_id":"c1","total":3.5},{"customer_id":"c2","total":2}],"next_cursor":"b"}`, "b": `{"items":[{"customer_id":"c3","total":4}],"next_cursor":null}`}
				return page[fmt.Sprint(args["cursor"])], nil
			},
		},
		mcptest.Tool{
			Name: "list_parts", ReadOnly: true, Schema: `{"type":"object","properties":{"cursor":{"type":"string"}}}`,
			Do: func(args map[string]any) (string, error) {
				if args["cursor"] == nil {
					return `{"data":[{"id":1}],"meta":{"cursor":"x"}}`, nil
				}
				return `{"data":[{"id":2}],"meta":{}}`, nil
			},
		},
		mcptest.Tool{Name: "ship!", Destructive: true, Text: "shipped"},
	)
	crm := mcptest.New(mcptest.Tool{
		Name: "get_customer", ReadOnly: true, Schema: `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"],"additionalProperties":false}`,
		Do: func(args map[string]any) (string, error) {
			id := fmt.Sprint(args["id"])
			switch {
			case id == "busy" && !busy[id]:
				busy[id] = true
				return "", fmt.Errorf("429: busy")
			case id != "busy" && regions[id] == "":
				return "", fmt.Errorf("nobody is called %s", id)
			}
			return fmt.Sprintf(`{"id":%q,"region":%q}`, id, regions[id]), nil
		},
	})
	store := runs.New(runs.Options{Dir: t.TempDir()})
	t.Cleanup(func() { store.Close() })
	return stages.Deps{
		Tools:    mcptest.Pool(t, map[string]*mcptest.Upstream{"shop": shop, "crm": crm}),
		Commands: sharedSandbox(t), Schemas: schemas.Stages(), Runs: store.Of("me"),
	}, shop
}

// TestExampleOfText: the example that agents read works as it stands.
func TestExampleOfText(t *testing.T) {
	text, err := os.ReadFile("texts/execute_pipeline.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, ok := strings.Cut(string(text), "joined:\n")
	if !ok {
		t.Fatal("the text has no example")
	}
	deps, _ := textDeps(t)
	got, report := executed(t, deps, example)
	if want := `[{"region":"north","sum":8},{"region":"south","sum":2}]` + "\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if p := report.Stages[0]; p.Pages != 2 || p.Fetched != 3 || !p.Complete || p.More {
		t.Errorf("%d pages, %d items", p.Pages, p.Fetched)
	}
}

// TestSentencesOfText: what the text says of each field is what happens.
func TestSentencesOfText(t *testing.T) {
	deps, shop := textDeps(t)
	for _, tt := range []struct{ sentence, pipeline, want string }{
		{
			`{"arg":"cursor","next":".meta.cursor","items":".data"}`,
			`[{"type":"tool","server":"shop","name":"list_parts","paginate":{"arg":"cursor","next":".meta.cursor","items":".data"}},{"type":"command","command":"jq","args":["-c","."]}]`,
			`[{"id":1},{"id":2}]` + "\n",
		},
		{
			`jq -R -s fromcsv: one array of row objects, values as strings`,
			`[{"type":"command","command":"jq","args":["-nr","\"a,b\\n1,2\""]},{"type":"command","command":"jq","args":["-c","-R","-s","fromcsv"]}]`,
			`[{"a":"1","b":"2"}]` + "\n",
		},
		{
			`jq --slurpfile u @u '... $u[0] ...'`,
			`[{"type":"command","command":"jq","args":["-n","1"]},{"type":"command","command":"jq","args":["-c","--slurpfile","u","@u",". + $u[0]"],"inputs":{"u":[{"type":"command","command":"jq","args":["-n","41"]}]}}]`,
			"42\n",
		},
		{
			`join - @u`,
			`[{"type":"command","command":"jq","args":["-nr","\"a 1\""]},{"type":"command","command":"join","args":["-","@u"],"inputs":{"u":[{"type":"command","command":"jq","args":["-nr","\"a 2\""]}]}}]`,
			"a 1 2\n",
		},
		{
			`with_item: true gives [{"item":ITEM,"result":RESULT}, ...]`,
			`[{"type":"command","command":"jq","args":["-nc","{id: \"c1\", total: 3}"]},{"type":"tool","server":"crm","name":"get_customer","for_each":true,"with_item":true},{"type":"command","command":"jq","args":["-c","."]}]`,
			`[{"item":{"id":"c1","total":3},"result":{"id":"c1","region":"north"}}]` + "\n",
		},
		{
			`"skip"`,
			`[{"type":"command","command":"jq","args":["-nc","\"c1\", \"c9\""]},{"type":"tool","server":"crm","name":"get_customer","for_each":true,"on_error":"skip"},{"type":"command","command":"jq","args":["length"]}]`,
			"1\n",
		},
		{
			`"collect" ({"error":{"message",...,"item":ITEM}} in its place`,
			`[{"type":"command","command":"jq","args":["-nc","\"c9\""]},{"type":"tool","server":"crm","name":"get_customer","for_each":true,"on_error":"collect"},{"type":"command","command":"jq","args":["-c","map(.error | [.message, .item])"]}]`,
			`[["nobody is called c9","c9"]]` + "\n",
		},
		{
			`with_item: {"item":ITEM,"error":{...}}`,
			`[{"type":"command","command":"jq","args":["-nc","\"c9\""]},{"type":"tool","server":"crm","name":"get_customer","for_each":true,"on_error":"collect","with_item":true},{"type":"command","command":"jq","args":["-c","map([.item, .error.message])"]}]`,
			`[["c9","nobody is called c9"]]` + "\n",
		},
		{
			`retries: N more tries of failed items`,
			`[{"type":"command","command":"jq","args":["-nc","\"busy\""]},{"type":"tool","server":"crm","name":"get_customer","for_each":true,"retries":2,"retry_on":"busy|429"},{"type":"command","command":"jq","args":["length"]}]`,
			"1\n",
		},
		{
			`parallel {branches:{name:[stages]}}: output {name: value}`,
			`[{"type":"parallel","branches":{"n":[{"type":"command","command":"jq","args":["-n","1"]}]}}]`,
			`{"n":1}` + "\n",
		},
	} {
		text, err := os.ReadFile("texts/execute_pipeline.md")
		if err != nil || !strings.Contains(string(text), tt.sentence) {
			t.Errorf("the text does not say %s (%v)", tt.sentence, err)
		}
		if got, _ := executed(t, deps, tt.pipeline); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.sentence, got, tt.want)
		}
	}
	guard := `[{"type":"command","command":"jq","args":["-n","1"]},{"type":"command","command":"jq","args":["if . == 1 then error(\"why\") else . end"]},{"type":"tool","server":"shop","name":"ship!"}]`
	p, errs := stages.Compile(t.Context(), []byte(guard), deps)
	if errs != nil {
		t.Fatal(errs)
	}
	if _, err := p.Run(t.Context(), nil, &bytes.Buffer{}, stages.RunOptions{}); err == nil || shop.Calls("ship!") != 0 {
		t.Errorf("%v, %d calls", err, shop.Calls("ship!"))
	}
}

// TestSizeOfTools: what every session of an agent pays for is the whole result as it comes, in both eras.
func TestSizeOfTools(t *testing.T) {
	g := newWorld(t).gateway
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		w := newAgent(t, g.Handler(), version).list(t)
		_, data, found := strings.Cut(w.Body.String(), "data: ") // an event, or the answer by itself
		if !found {
			data = w.Body.String()
		}
		var answer struct {
			Result json.RawMessage `json:"result"`
		}
		if err := json.Unmarshal([]byte(data), &answer); err != nil || !bytes.Contains(answer.Result, []byte(`"execute_pipeline"`)) {
			t.Fatalf("%s: %v, %s", version, err, w.Body)
		}
		if n := len(answer.Result); n > 6500 {
			t.Errorf("%s: the result of tools/list has %d bytes, want at most 6500", version, n)
		}
	}
}

// TestFromOfDryRun: the stage that continues a dry run makes exactly the calls that it has shown, and reads nothing again.
func TestFromOfDryRun(t *testing.T) {
	deps, shop := textDeps(t)
	const read = `{"type":"tool","server":"shop","name":"list_orders","paginate":true},{"type":"command","command":"jq","args":["-c",".[] | {customer: .customer_id}"]}`
	const write = `{"type":"tool","server":"shop","name":"ship!","for_each":true}`
	p, errs := stages.Compile(t.Context(), []byte(`[`+read+`,`+write+`]`), deps)
	if errs != nil {
		t.Fatal(errs)
	}
	report, err := p.Run(t.Context(), nil, &bytes.Buffer{}, stages.RunOptions{DryRun: true})
	if err != nil || shop.Calls("ship!") != 0 || report.DryRun.Calls[0].Count != 3 {
		t.Fatalf("%v, %d calls, %+v", err, shop.Calls("ship!"), report.DryRun)
	}
	reads := shop.Calls("list_orders")
	executed(t, deps, "["+stages.ResumeStage(report.Run)+"]")
	if n := shop.Calls("ship!"); n != 3 || shop.Calls("list_orders") != reads {
		t.Errorf("%d calls that change something, %d reads more", n, shop.Calls("list_orders")-reads)
	}
}

// TestResumeOfText: the stage that continues a failed for_each calls nothing again that succeeded.
func TestResumeOfText(t *testing.T) {
	deps, _ := textDeps(t)
	const each = `{"type":"tool","server":"crm","name":"get_customer","for_each":true,"concurrency":1`
	p, errs := stages.Compile(t.Context(), []byte(`[{"type":"command","command":"jq","args":["-n","\"c1\", \"c9\", \"c3\""]},`+each+`},{"type":"command","command":"jq","args":["-c","map(.id)"]}]`), deps)
	if errs != nil {
		t.Fatal(errs)
	}
	_, err := p.Run(t.Context(), nil, &bytes.Buffer{}, stages.RunOptions{})
	var failed *stages.Error
	if !errors.As(err, &failed) || failed.Item != 2 {
		t.Fatalf("got %v, want a failure of item 2", err)
	}
	got, report := executed(t, deps, fmt.Sprintf(`[{"type":"from","run":%q,"resume":true,"on_error":"skip"}]`, failed.Run))
	if each := report.Stages[1]; got != `["c1","c3"]`+"\n" || each.Resumed != 1 || each.Calls != 2 {
		t.Errorf("got %s with %d items resumed and %d calls, want 1 and 2", got, each.Resumed, each.Calls)
	}
}

// TestTeeOfText: a file is saved only where there is a workspace.
func TestTeeOfText(t *testing.T) {
	deps, _ := textDeps(t)
	_, errs := stages.Compile(t.Context(), []byte(`[{"type":"command","command":"jq","args":["-n","1"]},{"type":"tee","path":"a.json"}]`), deps)
	if len(errs) != 1 || errs[0].Code != stages.Denied || !strings.Contains(errs[0].Hint, "--workspace") {
		t.Errorf("got %v", errs)
	}
}

func executed(t *testing.T, deps stages.Deps, pipeline string) (string, stages.Report) {
	t.Helper()
	p, errs := stages.Compile(t.Context(), []byte(pipeline), deps)
	if errs != nil {
		t.Fatalf("%s: %v", pipeline, errs)
	}
	var out bytes.Buffer
	report, err := p.Run(t.Context(), nil, &out, stages.RunOptions{})
	if err != nil {
		t.Fatalf("%s: %v", pipeline, err)
	}
	return out.String(), report
}
