//go:build !race

package stages_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestPagesHostile runs lists that are larger, deeper or longer than any that is meant well. Their errors are short.
func TestPagesHostile(t *testing.T) {
	deep := func(open, end string, n int) string { return strings.Repeat(open, n) + "1" + strings.Repeat(end, n) }
	fields := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":{},`, i)
		}
		return b.String()
	}
	long := strings.Repeat("x", 1<<20)
	many := parttest.Times(250_000, 1_000_000) // more than the fields that are looked through
	tests := []struct {
		name, page, paginate string
		want                 string // in the error; empty: it works
		items                int64
	}{
		{"very many items", `[` + strings.Repeat("1,", many-1) + `1]`, `{"next":".[0].x?"}`, "", int64(many)},
		{"deep", deep(`{"a":`, "}", 5000), `true`, "no array of items", 0},
		{"as deep as JSON may be", deep(`{"a":`, "}", 10_000), `true`, "no array of items", 0},
		{"arrays as deep as JSON may be", deep(`[`, "]", 10_000), `{"next":".x?"}`, "", 1},
		{"deep and named", deep(`{"a":`, "}", 10_000), `{"next":".x","items":"` + strings.Repeat(".a", 32) + `"}`, "", 1},
		{"deep and whole", deep(`{"a":`, "}", 10_000), `{"next":".x","items":"."}`, "", 1},
		{"too deep for JSON", strings.Repeat(`[`, 20000), `true`, "the result is text", 0},
		{"members without end", `{` + strings.Repeat(`"a":{},`, 100_000) + `"items":[1],"nextCursor":null}`, `true`, "", 1},
		{"very many members", `{` + fields(many) + `"items":[1],"nextCursor":null}`, `true`, "(8 levels, 1000 objects, 200000 fields)", 0},
		{"very many members and named", `{` + fields(many) + `"items":[1],"nextCursor":null}`, `{"next":".nextCursor","items":".items"}`, "", 1},
		{"very many members behind", `{"items":[1],"nextCursor":null,` + fields(many) + `"x":0}`, `true`, "", 1},
		{"very many items by name", `{"items":{` + fields(many) + `"x":0}}`, `{"next":".x","items":".items[]"}`, "", int64(many) + 1},
		{"a long name", `{"` + long + `":[1]}`, `true`, "no array of items", 0},
		{"a long name within", `{"items":[1],"` + long + `":{"next_cursor":"b"}}`, `true`, "nothing in the result", 0},
		{"long cursor", `{"items":[1],"next":"` + strings.Repeat("x", 17<<20) + `"}`, `true`, "longer than 16 MiB (limit input)", 0},
		{"a long URL", `{"items":[1],"next":"https://a/?` + long + `&` + strings.Repeat("y=&", 100_000) + `"}`, `{"next":".next"}`, "whose query has no", 0},
		{"a long URL with the argument", `{"items":[1],"next":"https://a/?` + long + `&cursor=a"}`, `{"next":".next","max":1}`, "", 1},
		{"a long item in the wrong place", `{"items":"` + long + `"}`, `true`, "no array of items", 0},
		{"a long value for the next page", `{"items":[1],"next":{"x":"` + long + `"}}`, `{"next":".next"}`, "the value for the next page is an object", 0},
		{"one name twice", `{"items":[0,1],"items":[2],"next":"x","next":null}`, `true`, "", 1},
		{"an object as next", `{"items":[1],"next":{"href":"x"}}`, `{"next":".next"}`, "the value for the next page is an object", 0},
		{"nothing", ``, `true`, "", 0},
		{"no UTF-8", "{\"items\":[\"\xff\"],\"next_cursor\":\"\"}", `true`, "", 1},
		{"many blocks", blocks(100_000), `{"next":".x?"}`, "", 100_000},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := pagedWorld(map[string]string{"cursor": "string"}, func(map[string]any) string { return test.page })
			pipeline := `[{"type":"tool","server":"demo","name":"list","paginate":` + test.paginate + `}]`
			_, report, err := w.run(t, pipeline, "")
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error %.300v, want %q", err, test.want)
			}
			var e *stages.Error
			if errors.As(err, &e) && len(e.Msg)+len(e.Hint) > 2000 {
				t.Errorf("the error has %d bytes, and the hint %d", len(e.Msg), len(e.Hint))
			}
			if got := report.Stages[0].Fetched; err == nil && got != test.items {
				t.Errorf("%d items, want %d", got, test.items)
			}
		})
	}
}
