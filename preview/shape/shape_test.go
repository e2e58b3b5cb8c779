package shape_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/preview/shape"
)

func object(fields ...shape.Field) *shape.Shape {
	return &shape.Shape{Kinds: shape.Object, Fields: fields}
}

func field(name string, kinds shape.Kinds) shape.Field {
	return shape.Field{Name: name, Shape: &shape.Shape{Kinds: kinds}}
}

// TestMerge: what only some calls return is optional, what was null once is nullable, and order stays.
func TestMerge(t *testing.T) {
	a := object(field("id", shape.Int), field("email", shape.Str))
	b := object(field("id", shape.Int), field("email", shape.Null), field("url", shape.Str))
	for _, c := range []struct {
		a, b *shape.Shape
		want string
	}{
		{a, b, "{id: int, email: str|null, url?: str}"},
		{b, a, "{id: int, email: str|null, url?: str}"},
		{a, nil, "{id: int, email: str}"},
		{nil, b, "{id: int, email: null, url: str}"},
		{a, &shape.Shape{Kinds: shape.Null}, "{id: int, email: str}|null"},
		{a, &shape.Shape{Kinds: shape.Array}, "{id: int, email: str}|[]"},
		{&shape.Shape{Kinds: shape.Int}, &shape.Shape{Kinds: shape.Num}, "num"},
	} {
		if got := shape.Merge(c.a, c.b).Brief(300); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	if a.Brief(300) != "{id: int, email: str}" || b.Brief(300) != "{id: int, email: null, url: str}" {
		t.Error("merging changed what was merged")
	}
}

// TestManyCalls: objects whose keys differ with every call become maps before they become long.
func TestManyCalls(t *testing.T) {
	var all *shape.Result
	for i := range 1000 {
		all = shape.MergeResults(all, &shape.Result{Calls: 1, Value: object(field("id", shape.Int), field(fmt.Sprint("x", i), shape.Str))})
	}
	if got := all.Brief(300); all.Calls != 1000 || len(got) > 300 || len(all.Value.Fields) > shape.MaxFields {
		t.Errorf("%d calls, %d fields: %s", all.Calls, len(all.Value.Fields), got)
	}
}

// TestBrief: what does not fit is left out, scalars in arrays last.
func TestBrief(t *testing.T) {
	item := object(field("number", shape.Int))
	item.Fields = append(item.Fields, shape.Field{Name: "labels", Shape: &shape.Shape{Kinds: shape.Array, Items: &shape.Shape{Kinds: shape.Str}}})
	for i := range 40 {
		item.Fields = append(item.Fields, field(fmt.Sprint("field_", i), shape.Str))
	}
	list := object(shape.Field{Name: "items", Shape: &shape.Shape{Kinds: shape.Array, Items: item}}, field("next_page", shape.Int|shape.Null))
	for _, n := range []int{40, 80, 120, 300, 2000} {
		got := list.Brief(n)
		if len([]rune(got)) > n || n > 100 && !strings.HasPrefix(got, "{items: [{number: int, labels: [str], ") ||
			n > 60 && !strings.Contains(got, "next_page: int|null") {
			t.Errorf("%d: %d characters: %s", n, len([]rune(got)), got)
		}
	}
}

func TestNamed(t *testing.T) {
	known := shape.Common()
	for name, want := range map[string]bool{
		"id": true, "userId": true, "created_at": true, "HTTPServer": true, "line2": true, "@type": true, "@alice": false, "next-page": true,
		"": false, "alice": false, "a@b.c": false, "id_12345": false, "user id": true, "id/name": false, "2024": false, "ид": false,
		strings.Repeat("id_", 30): false,
	} {
		if shape.Named(name, known) != want {
			t.Errorf("%q: want %v", name, want)
		}
	}
}

// TestPattern: a pattern holds no value.
func TestPattern(t *testing.T) {
	known := shape.Common()
	for line, want := range map[string]string{
		`2026-01-02T03:04:05.123Z [ERROR] (worker) user=bob took 35ms`:         `<time> [ERROR] (…) user=… …`,
		`10.0.0.1 - - [10/Oct/2026:13:55:36 +0000] "GET /x HTTP/1.1" 200 2326`: `<ip> … <n> <n>`,
		`| name | alice |`:                         `| …`,
		`id: 0f8fad5b-d9cb-469f-a165-70867728950e`: `id: <id>`,
		`https://example.com/secret done`:          `<url> …`,
		`[{'id': 1, 'secret': None}]`:              `<python>`,
		`['a', 'b']`:                               `<python>`,
		`[('a', 1)]`:                               `<python>`,
		`[INFO] it's`:                              `[INFO] …`,
		`hunter2`:                                  `…`, `swordfish: 7`: `… <n>`, `count=7`: `count=<n>`, `<time> x`: `…`,
	} {
		if got := shape.Pattern(line, known); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", line, got, want)
		}
	}
}
