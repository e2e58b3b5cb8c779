//go:build !race

package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/costtest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/questions"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
	"github.com/mcsh-dev/mcsh/upstream/sessions"
	"github.com/mcsh-dev/mcsh/upstream/toollist"
)

// repeat joins n texts, made by a format that is given their number.
func repeat(n int, format string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(format, "#N", fmt.Sprint(i))
	}
	return strings.Join(all, ",")
}

// deepReferences is a schema of n properties, each of which refers to the next ones.
func deepReferences(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"p%d":{"anyOf":[{"$ref":"#/properties/p%d"},{"$ref":"#/properties/p%d"},{"properties":{"a":{"$ref":"#"}}}]}`, i, (i+1)%n, (i+2)%n)
	}
	return `{"type":"object","properties":{` + strings.Join(all, ",") + `}}`
}

// costlyLists are pages of tool lists that cost too much unless that is bounded, with what is said of them.
var costlyLists = []struct{ name, page, said string }{
	{"deep references", `{"tools":[` + repeat(100, `{"name":"t#N","inputSchema":DEEP,"outputSchema":DEEP}`) + `]}`, "is too costly"},
	{"references, not too deep", `{"tools":[` + repeat(50, `{"name":"t#N","inputSchema":FEW}`) + `]}`, ""},
	{"deep references, many properties", `{"tools":[` + repeat(12, `{"name":"t#N","inputSchema":INPUT}`) + `]}`, "is too costly"},
	{"patterns", `{"tools":[` + repeat(10, `{"name":"t#N","inputSchema":PATTERNS}`) + `]}`, "is too costly"},
	{"long name", `{"tools":[{"name":"` + strings.Repeat("a", 4<<20) + `"},{"name":"b"}]}`, "its name has 4194304 bytes, more than 1024"},
	{"long description", `{"tools":[{"name":"a","title":"` + strings.Repeat("b ", 2<<20) + `","description":"` + strings.Repeat("c ", 4<<20) + `"}]}`, ""},
	{"many tools", `{"tools":[` + repeat(10_000, `{"name":"t#N","inputSchema":{"properties":{"a":{},"b":{"type":"string"}}}}`) + `]}`, ""},
	{"many properties", `{"tools":[` + repeat(9, `{"name":"t#N","inputSchema":PROPERTIES}`) + `]}`, "is too costly"},
	{"deep", `{"tools":[{"name":"a","inputSchema":` + strings.Repeat(`{"properties":{"a":`, 4000) + `{}` + strings.Repeat("}}", 4000) + `}]}`, "is too costly"},
	{"deep headers", `{"tools":[{"name":"a","inputSchema":` + strings.Repeat(`{"properties":{"a":`, 4000) + `{"x-mcp-header":"A"}` + strings.Repeat("}}", 4000) + `}]}`, "nested deeper than 16 levels"},
	{"deep results", `{"tools":[{"name":"a","outputSchema":OUTPUT}]}`, ""},
}

// filled is a page with its long schemas.
func filled(page string) []byte {
	return []byte(strings.NewReplacer(
		"INPUT", deepReferences(6000), "DEEP", deepReferences(400), "FEW", deepReferences(30),
		"PATTERNS", `{"properties":{`+repeat(3000, `"p#N":{"pattern":"((a{1,30}){1,30})#N"}`)+`}}`,
		"PROPERTIES", `{"properties":{`+repeat(60_000, `"p#N":{}`)+`},"required":[`+repeat(40_000, `"p#N"`)+`]}`,
		"OUTPUT", `{"anyOf":[`+repeat(2000, `{"properties":{`+repeat(20, `"p#N":{"$ref":"#"}`)+`}}`)+`]}`,
	).Replace(page))
}

// readList does with a page of a tool list everything that is done to list its tools, and returns what is said of it.
func readList(page []byte) (tools int, said string) {
	ctx := context.Background()
	sc := newServerConn(&Server{Name: "x"}, NewPool(Options{}))
	list := toollist.New(sc.reader(), 0, true)
	if _, err := list.AddPage(page, nil); err != nil {
		return 0, err.Error()
	}
	for range 2 {
		listed, _ := sc.allowed(ctx, list)
		tools, said = len(listed), uncheckedTools(listed)
	}
	return tools, strings.Join(append(list.Notes(), said), "; ")
}

// TestListCosts: what listing the tools of one server costs is bounded, and what is not read is said.
func TestListCosts(t *testing.T) {
	for _, c := range costlyLists {
		t.Run(c.name, func(t *testing.T) {
			page := filled(c.page)
			if !json.Valid(page) {
				t.Fatal("no JSON")
			}
			tools, said := 0, ""
			costtest.Run(t, func() { tools, said = readList(page) })
			if c.said == "" && said != "" || !strings.Contains(said, c.said) {
				t.Errorf("%d tools, and it says %.300q, want %q", tools, said, c.said)
			}
		})
	}
}

// TestHeaderCosts: servers decide how many arguments are headers, and agents how long the arguments are.
func TestHeaderCosts(t *testing.T) {
	const n, depth = 20_000, 16
	sc := newServerConn(&Server{Name: "x"}, NewPool(Options{}))
	wanted := repeat(n, `"p#N":{"type":"string","x-mcp-header":"H#N"}`)
	deep := strings.Repeat(`{"properties":{"a":`, depth+2)
	for name, c := range map[string]struct {
		schema, args string
		want         int
	}{
		"many":           {`{"properties":{` + wanted + `}}`, `{` + repeat(n, `"p#N":"v"`) + `,"rest":REST}`, n},
		"many, not one":  {`{"properties":{` + wanted + `}}`, `{"rest":REST}`, 0},
		"many, nested":   {`{"properties":{"a":{"properties":{` + wanted + `}},"z":{"x-mcp-header":"Z"}}}`, `{"a":{` + repeat(n, `"p#N":"v"`) + `,"rest":REST},"z":1}`, n + 1},
		"many, too deep": {deep + `{"properties":{` + wanted + `}}` + strings.Repeat("}}", depth+2), strings.Repeat(`{"a":`, depth+1) + `{"rest":REST}` + strings.Repeat("}", depth+1), 0},
	} {
		t.Run(name, func(t *testing.T) {
			tool, err := sc.reader().Parse([]byte(`{"name":"a","inputSchema":`+c.schema+`}`), false)
			if err != nil {
				t.Fatal(err)
			}
			args := strings.ReplaceAll(c.args, "REST", `"`+strings.Repeat("x", 1<<20)+`"`)
			var found map[string]string
			costtest.Run(t, func() { found = tool.HeadersOf([]byte(args)) })
			if len(found) != c.want {
				t.Errorf("%d headers, want %d", len(found), c.want)
			}
		})
	}
}

// unsent is a transport that sends nothing.
type unsent struct{ sessions.Transport }

func (unsent) Request(context.Context, *rpc.Request) (json.RawMessage, *rpc.Failure) { return nil, nil }

// TestArgumentsAreCopiedOnce: the parameters of a call are made in one piece, of the right size.
func TestArgumentsAreCopiedOnce(t *testing.T) {
	const size = 8 << 20
	args := []byte(`{"a":"` + strings.Repeat("x", size) + `"}`)
	tool, err := newServerConn(&Server{Name: "x"}, NewPool(Options{})).reader().Parse([]byte(`{"name":"a"}`), false)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*sessions.Session{
		"older era": {Transport: unsent{}},
		"newer era": {Transport: unsent{}, Version: sessions.NewVersion, Meta: sessions.RequestMeta(sessions.NewVersion, nil), Capabilities: questions.Declared{}.Meta(false)},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = sendCall(t.Context(), s, stages.Call{Name: "a", Args: args}, &asking{}, tool, nil)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > size*5/4 {
			t.Errorf("%s: %d KB were allocated for arguments of %d KB", name, got>>10, size>>10)
		}
	}
}

// FuzzListCost: listing 100 KB of tools is never expensive.
func FuzzListCost(f *testing.F) {
	for _, c := range costlyLists {
		if page := filled(c.page); len(page) <= costtest.Input {
			f.Add(page)
		}
	}
	f.Add([]byte(`{"tools":[` + repeat(4, `{"name":"t#N","inputSchema":`+deepReferences(80)+`}`) + `]}`))
	f.Add([]byte(`{"tools":[` + repeat(4, `{"name":"t#N","inputSchema":{"properties":{`+strings.ReplaceAll(repeat(400, `"p#N":{"pattern":"((a{1,30}){1,30})"}`), "#N", "p")+`}}}`) + `]}`))
	f.Add([]byte(`{"tools":[{"name":"a","inputSchema":{"required":[` + repeat(9000, `"p#N"`) + `],"x-mcp-header":"a"},"annotations":{"readOnlyHint":true}}],"nextCursor":"2","ttlMs":1e99}`))
	f.Fuzz(func(t *testing.T, page []byte) {
		page = page[:min(len(page), costtest.Input)]
		costtest.Run(t, func() { readList(page) })
	})
}
