package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// showing is a tool that returns its arguments as they came.
func showing(name, schema string) mcptest.Tool {
	return mcptest.Tool{Name: name, Schema: schema, ReadOnly: true, Raw: func(_ context.Context, args json.RawMessage) (string, error) {
		text, err := json.Marshal(string(args))
		return `{"content":[{"type":"text","text":` + string(text) + `}]}`, err
	}}
}

// fixedPool has a server with fixed arguments, some tools of every test, and more.
func fixedPool(t *testing.T, more ...mcptest.Tool) *upstream.Pool {
	s := mcptest.New(append(more,
		showing("closed", `{"type":"object","properties":{"root":{"type":"string"},"path":{"type":"string"}},"required":["root","path"],"additionalProperties":false}`),
		showing("open", `{"type":"object","properties":{"path":{"type":"string"}}}`),
		showing("other", `{"type":"object","properties":{"path":{"type":"string"}},"additionalProperties":false}`),
		showing("wants-number", `{"type":"object","properties":{"root":{"type":"integer"}}}`),
	)...)
	return staticPool(t, upstream.Options{}, upstream.Server{
		Name: "s", Dial: s.Dial, With: map[string]json.RawMessage{"root": json.RawMessage(`"/srv"`), "n": json.RawMessage(`1.10`)},
	})
}

// TestWith: fixed arguments come with every call of a tool that takes them, and agents neither see nor give them.
func TestWith(t *testing.T) {
	p := fixedPool(t,
		showing("long", `{"type":"object","properties":{"root":{},"path":{"enum":[`+strings.Repeat(`"12345",`, 90_000)+`0]}}}`),
		showing("costly", `{"type":"object","properties":{"root":{},"path":{"enum":[`+strings.Repeat("0,", 261_000)+`0]}}}`),
	)
	for tool, want := range map[string]string{
		"closed": `{"root":"/srv","path":"a"}`, "open": `{"n":1.10,"root":"/srv","path":"a"}`, "other": `{"path":"a"}`,
	} {
		res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: tool, Args: json.RawMessage(`{"path":"a"}`)})
		if err != nil || string(res.Data) != want {
			t.Errorf("%s: got %s, %v; want %s", tool, res.Data, err, want)
		}
	}
	if res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "open"}); err != nil || string(res.Data) != `{"n":1.10,"root":"/srv"}` {
		t.Errorf("without arguments: got %s, %v", res.Data, err)
	}
	for _, args := range []string{`{"path":"a","root":"/etc"}`, `{"path":"a","ROOT":"/etc"}`} {
		_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "closed", Args: json.RawMessage(args)})
		wantError(t, err, stages.InvalidArguments, `"root" is fixed by the operator`, "leave it out")
	}
	_, err := p.Tool(t.Context(), "s", "wants-number")
	wantError(t, err, stages.Denied, "the operator's fixed arguments (with) are wrong", "")
	for _, tool := range p.Catalog(t.Context())[0].Tools {
		if tool.Name != "wants-number" && bytes.Contains(tool.InputSchema, []byte("root")) || strings.Contains(tool.Tool.Signature, "root") {
			t.Errorf("%s shows what is fixed: %s, %.1000s", tool.Name, tool.Tool.Signature, tool.InputSchema)
		}
		if costly := tool.Name == "costly"; costly != strings.Contains(tool.Flaw, "steps") || costly != (tool.InputSchema == nil) {
			t.Errorf("%s has the flaw %q and the schema %.1000s", tool.Name, tool.Flaw, tool.InputSchema)
		}
	}
}

// TestWithPipeline: a plan that gives a fixed argument is wrong; a field of the data with its name is left out and
// reported.
func TestWithPipeline(t *testing.T) {
	deps := stages.Deps{Tools: fixedPool(t), Schemas: schemas.Stages()}
	_, errs := stages.Compile(t.Context(), []byte(`[{"type":"tool","server":"s","name":"closed","args":{"path":"a","root":"/etc"}}]`), deps)
	if len(errs) != 1 || errs[0].Code != stages.InvalidArguments || !strings.Contains(errs[0].Msg, `"root" is fixed by the operator`) {
		t.Errorf("got %v", errs)
	}
	for _, tool := range []string{"closed", "open"} {
		plan := `[{"type":"tool","server":"s","name":"` + tool + `","for_each":true,"collect":"lines"}]`
		pipeline, errs := stages.CompileFed(t.Context(), []byte(plan), deps)
		if errs != nil {
			t.Fatal(errs)
		}
		var out bytes.Buffer
		report, err := pipeline.Run(t.Context(), strings.NewReader(`{"path":"a","root":"/etc"}`+"\n"+`{"path":"b","Root":"/etc"}`+"\n"), &out, stages.RunOptions{})
		if err != nil || strings.Contains(out.String(), "/etc") || strings.Count(out.String(), "/srv") != 2 {
			t.Errorf("%s: got %s, %v", tool, &out, err)
		}
		data, _ := json.Marshal(report)
		if !bytes.Contains(data, []byte(`"root"`)) || !bytes.Contains(data, []byte(`"Root"`)) {
			t.Errorf("%s: the report does not name the fields that were left out: %s", tool, data)
		}
	}
}
