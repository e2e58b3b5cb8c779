//go:build !race

package upstream_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestHostileLists: lists without end are cut, and the error of a missing tool says so.
func TestHostileLists(t *testing.T) {
	one := func(name, description string) string {
		return fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":{"type":"object"}}`, name, description)
	}
	many := func(n int, tool string) string {
		return `{"tools":[` + strings.TrimSuffix(strings.Repeat(tool+",", n), ",") + `]}`
	}
	most := int64(parttest.Times(1<<20, upstream.DefaultToolList))
	big := strings.Repeat("x", int(most*3/8))
	tooLong := fmt.Sprintf("it is longer than %d bytes (limit tool-list; the operator can raise it with --limit tool-list=%dMiB)", most, 2*most>>20)
	var distinct []string
	for i := range 10_001 {
		distinct = append(distinct, one(fmt.Sprint("t", i), ""))
	}
	for _, c := range []struct {
		name  string
		page  func(cursor string) string
		tools int
		note  string
		set   upstream.Options
	}{
		{"in circles", func(cursor string) string {
			next := map[string]string{"": "x", "x": "y", "y": "x"}[cursor]
			return `{"tools":[` + one("a"+cursor, "") + `],"nextCursor":"` + next + `"}`
		}, 3, "the tool list was cut after 3 tools: the server gives the same page again", upstream.Options{}},
		{"without end", func(cursor string) string {
			return `{"tools":[` + one("a"+cursor, "") + `],"nextCursor":"` + cursor + `x"}`
		}, 100, "cut after 100 tools: it has more than 100 pages, one for each hundred tools that it may have (limit tools; the operator can raise it with --limit tools=20000)", upstream.Options{}},
		{"without end, of more tools", func(cursor string) string {
			return `{"tools":[` + one("a"+cursor, "") + `],"nextCursor":"` + cursor + `x"}`
		}, 102, "cut after 102 tools: it has more than 102 pages", upstream.Options{Tools: 10_200}},
		{"too many", func(string) string { return `{"tools":[` + strings.Join(distinct, ",") + `]}` }, 10_000, "it has more than 10000 (limit tools; the operator can raise it with --limit tools=20000)", upstream.Options{}},
		{"as many as are allowed", func(string) string { return `{"tools":[` + strings.Join(distinct, ",") + `]}` }, 10_001, "", upstream.Options{Tools: 10_001}},
		{"more than are allowed", func(string) string { return many(20, one("a", "")) }, 1, "it has more than 3 (limit tools;", upstream.Options{Tools: 3}},
		{"too many of one name", func(string) string { return many(10_100, one("a", "")) }, 1, "it has more than 10000", upstream.Options{}},
		{"too long a page", func(string) string {
			return `{"tools":[` + one("a", big) + "," + one("b", big) + "," + one("c", big) + `]}`
		}, 2, tooLong, upstream.Options{ToolList: most}},
		{"as long a page as is allowed", func(string) string {
			return `{"tools":[` + one("a", big) + "," + one("b", big) + "," + one("c", big) + `]}`
		}, 3, "", upstream.Options{ToolList: most * 5 / 4}},
		{"a longer page than is allowed", func(string) string {
			return `{"tools":[` + one("a", "") + "," + one("b", big) + `]}`
		}, 1, "it is longer than 1024 bytes (limit tool-list;", upstream.Options{ToolList: 1 << 10}},
		{"too long together", func(cursor string) string {
			return `{"tools":[` + one("a"+cursor, big) + `],"nextCursor":"` + cursor + `x"}`
		}, 2, tooLong, upstream.Options{ToolList: most}},
		{"only mistakes", func(string) string { return many(9000, `1`) }, 0, "tool 10: ", upstream.Options{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := staticPool(t, c.set, upstream.Server{Name: "s", Dial: upstream.HTTP(upstream.Endpoint{URL: pagesServer(t, c.page)})})
			l := p.Catalog(t.Context())[0]
			if l.Err != nil || len(l.Tools) != c.tools || !strings.Contains(l.Note, c.note) || len(l.Note) > 2000 {
				t.Errorf("got %d tools, %v, note %.200q; want %d, %q", len(l.Tools), l.Err, l.Note, c.tools, c.note)
			}
			_, err := p.Tool(t.Context(), "s", "missing")
			if c.tools > 0 {
				wantError(t, err, stages.UnknownTool, "missing", c.note)
			}
		})
	}
}
