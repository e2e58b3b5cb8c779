//go:build !race

package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/costtest"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
)

// repeat joins n texts, made by a format that is given their number.
func repeat(n int, format string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(format, "#N", fmt.Sprint(i))
	}
	return strings.Join(all, ",")
}

// withSchema is a tool that only reads, with an input schema that the SDK need not take.
func withSchema(name, schema string) mcptest.Tool {
	return mcptest.Tool{Name: name, ReadOnly: true, Text: "done", Extra: `"inputSchema":` + schema}
}

// TestHostileSchemas: a server whose schemas are too costly to read or to compile is listed with a note and can be
// called; the tools of other servers are listed as ever.
func TestHostileSchemas(t *testing.T) {
	deep := make([]string, 400)
	for i := range deep {
		deep[i] = fmt.Sprintf(`"p%d":{"anyOf":[{"$ref":"#/properties/p%d"},{"$ref":"#/properties/p%d"},{"properties":{"a":{"$ref":"#"}}}]}`, i, (i+1)%400, (i+2)%400)
	}
	servers := map[string]*mcptest.Upstream{"good": mcptest.New(mcptest.Tool{Name: "hi", ReadOnly: true, Text: "hi", Schema: `{"type":"object","properties":{"n":{"type":"integer"}}}`})}
	var references, patterns []mcptest.Tool
	for i := range 200 {
		references = append(references, withSchema(fmt.Sprintf("deep%d", i), `{"type":"object","properties":{`+strings.Join(deep, ",")+`}}`))
	}
	for i := range 10 {
		patterns = append(patterns, withSchema(fmt.Sprintf("pattern%d", i), `{"type":"object","properties":{`+repeat(3000, `"p#N":{"pattern":"((a{1,30}){1,30})#N"}`)+`}}`))
	}
	servers["references"], servers["patterns"] = mcptest.New(references...), mcptest.New(patterns...)
	w := agentOf(t, mcptest.Pool(t, servers))
	for deadline := time.Now().Add(time.Minute); strings.Contains(w.list(t, map[string]any{"detail": "names"}), "(starting"); { // the servers are slow under the race detector
		if time.Now().After(deadline) {
			t.Fatal("the servers do not start")
		}
	}
	for _, args := range []map[string]any{{"detail": "brief"}, nil, {"query": "hi n"}, {"detail": "names"}, {"detail": "full", "query": "hi deep pattern"}} {
		var text string
		costtest.Run(t, func() { text = w.list(t, args) })
		if !strings.Contains(text, "hi(n?: int)") && !strings.Contains(text, "hi ") && !strings.Contains(text, "hi(n?: integer)") {
			t.Errorf("%v: the good tool is missing in:\n%.2000s", args, text)
		}
		if args["query"] == nil && strings.Count(text, "is too costly or cannot be read") != 2 {
			t.Errorf("%v: no notes on the costly servers in:\n%.2000s", args, text)
		}
	}
	for tool, why := range map[string]string{"references/deep7": "steps", "patterns/pattern3": "regexp instructions"} {
		texts, _ := w.call(t, "get_tool_details", map[string]any{"tools": []string{tool}})
		if !strings.Contains(texts[0], "Arguments are checked by the server only: ") || !strings.Contains(texts[0], why) {
			t.Errorf("%s: the details do not say why it is not checked: %.1000s", tool, texts[0])
		}
		server, name, _ := strings.Cut(tool, "/")
		if text, result := w.execute(t, fmt.Sprintf(`[{"type":"tool","server":%q,"name":%q,"args":{"p1":"a"}}]`, server, name)); result.IsError || !strings.Contains(text, "arguments not checked here: ") || !strings.Contains(text, why) || !strings.HasSuffix(strings.TrimSpace(text), "done") {
			t.Errorf("%s: it cannot be called, or the note does not say why it was not checked: %s", tool, text)
		}
	}
}

// TestHostileArguments: arguments that are too costly to check are not refused: the server gets them, and a note says so.
func TestHostileArguments(t *testing.T) {
	for name, c := range map[string]struct{ schema, args, why string }{
		"names and patterns": {`{"type":"object","patternProperties":{` + repeat(300, `"^(key|name)?.*[a-f]#N$":{}`) + `}}`, `{` + repeat(5000, `"key of some length #N":1`) + `}`, "steps"},
		"values":             {`{"type":"object","properties":{"l":{"type":"array"}}}`, `{"l":[` + repeat(300_000, `1`) + `]}`, "more than 262144 values"},
	} {
		t.Run(name, func(t *testing.T) {
			s := mcptest.New(withSchema("costly", c.schema), mcptest.Tool{Name: "source", ReadOnly: true, Text: c.args})
			w := agentOf(t, mcptest.Pool(t, map[string]*mcptest.Upstream{"x": s}))
			w.list(t, nil)
			costtest.Run(t, func() {
				text, result := w.execute(t, `[{"type":"tool","server":"x","name":"source"},{"type":"tool","server":"x","name":"costly"}]`)
				if result.IsError || !strings.Contains(text, "costly: arguments not checked here: ") || !strings.Contains(text, c.why) || s.Calls("costly") != 1 {
					t.Errorf("%d calls, and the reply is %.500s", s.Calls("costly"), text)
				}
			})
		})
	}
}

// TestMegabytesInSearches: queries, names and descriptions of megabytes cost a search little.
func TestMegabytesInSearches(t *testing.T) {
	long := strings.Repeat("issue repository branch ", 20_000)
	tools := []mcptest.Tool{{Name: "needle", Description: "Finds a haystack.", ReadOnly: true}}
	for i := range 4 {
		tools = append(tools, mcptest.Tool{Name: fmt.Sprintf("long%d", i), Description: long, Title: long})
	}
	for i := range 3000 {
		tools = append(tools, mcptest.Tool{Name: fmt.Sprintf("%s%d", strings.Repeat("x", 110), i)})
	}
	w := agentOf(t, mcptest.Pool(t, map[string]*mcptest.Upstream{"x": mcptest.New(tools...)}))
	w.list(t, nil)
	costtest.Run(t, func() {
		if text := w.list(t, map[string]any{"query": "haystack " + long}); !strings.Contains(text, "x/needle(") {
			t.Errorf("the query finds %.500s", text)
		}
		text, _ := w.execute(t, `[{"type":"tool","server":"x","name":"`+strings.Repeat("y", 100)+`"}]`)
		if !strings.Contains(text, "UNKNOWN_TOOL") {
			t.Errorf("got %.500s", text)
		}
		w.execute(t, `[{"type":"tool","server":"x","name":"`+strings.Repeat("y", 1<<20)+`"}]`)
	})
}
