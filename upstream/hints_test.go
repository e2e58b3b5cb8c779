package upstream_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// listedTool is a tool of a list with further members, such as annotations.
func listedTool(name, more string) string {
	return fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}%s}`, name, more)
}

// TestDoubtfulTools: a tool whose annotations contradict themselves, or whose name another one has, may change something:
// it is listed once, the list says why, and a gateway that only reads neither plans nor calls it.
func TestDoubtfulTools(t *testing.T) {
	const reads = `,"annotations":{"readOnlyHint":true}`
	hints := func(members string) []string { return []string{listedTool("get_x", `,"annotations":{`+members+`}`)} }
	for _, c := range []struct {
		name  string
		tools []string
		doubt string // empty: it only reads
	}{
		{"one that reads", []string{listedTool("get_x", reads)}, ""},
		{"not destructive", hints(`"readOnlyHint":true,"destructiveHint":false,"title":"x"`), ""},
		{"null says nothing", hints(`"readOnlyHint":true,"destructiveHint":null`), ""},

		{"destructive", hints(`"readOnlyHint":true,"destructiveHint":true`), "contradict each other"},
		{"destructive, in words", hints(`"readOnlyHint":true,"destructiveHint":"yes"`), "contradict each other"},
		{"a hint twice", hints(`"readOnlyHint":false,"readOnlyHint":true`), `"readOnlyHint" is given twice`},
		{"the same hint twice", hints(`"readOnlyHint":true,"readOnlyHint":true`), `"readOnlyHint" is given twice`},
		{"a hint in escapes", hints(`"readOnlyHint":true,"readOnly\u0048int":false`), `"readOnlyHint" is given twice`},
		{"a hint in other letters", hints(`"readOnlyHint":true,"READONLYHINT":false`), `reads as "readOnlyHint"`},
		{"destructive in other letters", hints(`"readOnlyHint":true,"destructivehint":true`), `reads as "destructiveHint"`},
		{"annotations twice", []string{listedTool("get_x", `,"annotations":{"readOnlyHint":false}`+reads)}, `"annotations" is given twice`},
		{"annotations in other letters", []string{listedTool("get_x", reads+`,"Annotations":{"readOnlyHint":false}`)}, `reads as "annotations"`},
		{"two of one name", []string{listedTool("get_x", reads), listedTool("y", ""), listedTool("get_x", "")}, "two tools of this name"},
		{"two that are alike", []string{listedTool("get_x", reads), listedTool("get_x", reads)}, "two tools of this name"},
		{"three, the first changes", []string{listedTool("get_x", ""), listedTool("get_x", reads), listedTool("get_x", reads)}, "two tools of this name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := pagesServer(t, func(cursor string) string { // a page for each, so that the second is on another one
				at := len(cursor)
				next := ""
				if at+1 < len(c.tools) {
					next = cursor + "x"
				}
				return fmt.Sprintf(`{"tools":[%s],"nextCursor":%q}`, c.tools[at], next)
			})
			pool := func(o upstream.Options, readOnly ...string) *upstream.Pool {
				return staticPool(t, o, upstream.Server{Name: "s", Dial: upstream.HTTP(upstream.Endpoint{URL: url}), ReadOnly: readOnly})
			}
			l := pool(upstream.Options{}).Catalog(t.Context())[0]
			if l.Err != nil || len(l.Tools) == 0 || l.Tools[0].Name != "get_x" || len(l.Tools) > 1 && l.Tools[1].Name != "y" {
				t.Fatalf("got %+v", l)
			}
			tool := l.Tools[0]
			if tool.ReadOnly != (c.doubt == "") || tool.Tool.ReadOnly != tool.ReadOnly || !tool.Tool.Annotated || tool.Tool.Idempotent {
				t.Errorf("got %+v", tool)
			}
			if !strings.Contains(tool.Doubt, c.doubt) || (c.doubt == "") != (l.Note == "") || !strings.Contains(l.Note, c.doubt) {
				t.Errorf("doubt %q, note %q; want %q", tool.Doubt, l.Note, c.doubt)
			}
			reading := pool(upstream.Options{ReadOnly: true})
			if _, err := reading.Tool(t.Context(), "s", "get_x"); c.doubt == "" && err != nil {
				t.Error(err)
			} else if c.doubt != "" {
				wantError(t, err, stages.Denied, c.doubt, "")
				_, err = reading.CallTool(t.Context(), stages.Call{Server: "s", Name: "get_x"})
				wantError(t, err, stages.Denied, c.doubt, "")
			}
			// The operator's own word counts, whatever the server says.
			if info, err := pool(upstream.Options{ReadOnly: true}, "get_*").Tool(t.Context(), "s", "get_x"); err != nil || !info.ReadOnly {
				t.Errorf("got %+v, %v", info, err)
			}
		})
	}
}

// TestDoubtIsKept: the list that the next gateway shows before the server has answered doubts the same tools.
func TestDoubtIsKept(t *testing.T) {
	dir := t.TempDir()
	url := pagesServer(t, func(string) string {
		const reads = `,"annotations":{"readOnlyHint":true}`
		return `{"tools":[` + listedTool("a", reads) + "," + listedTool("b", reads) + "," + listedTool("a", "") + `]}`
	})
	first := upstream.NewPool(upstream.Options{
		Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: upstream.HTTP(upstream.Endpoint{URL: url})}}}, State: openState(t, dir),
	})
	first.Catalog(t.Context())
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	l := staticPool(t, upstream.Options{State: openState(t, dir)}, upstream.Server{Name: "s", Dial: hang}).Saved(t.Context())[0]
	if len(l.Tools) != 2 || l.Tools[0].ReadOnly || !l.Tools[1].ReadOnly {
		t.Errorf("got %+v", l.Tools)
	}
}
