package preview_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/preview"
	"github.com/mcsh-dev/mcsh/preview/shape"
)

// resultShapes are results and what is learned from them, and what of that may be written to disk where that differs.
var resultShapes = []struct{ name, data, brief, disk string }{
	{
		"records", `{"items":[{"number":1,"labels":["a"],"email":null},{"number":2,"labels":[],"url":"x"}],"next_page":null}`,
		`{items: [{number: int, labels: [str], email?: null, url?: str}], next_page: null}`, "",
	},
	{"numbers", `[1, 2.5, 1e3]`, `[num]`, ""},
	{"integers of any size", `123456789012345678901234567890`, `int`, ""},
	{"lines of JSON", "{\"id\":1}\n{\"id\":\"x\",\"ok\":true}\n", `{id: str|int, ok?: bool} per line`, ""},
	{"nothing", " \n", "nothing", ""},
	{"null", "null\n", "null", ""},
	{"empty containers", `{"data":[],"meta":{}}`, `{data: [], meta: {}}`, ""},
	{"a map of people", `{"alice":{"age":3},"bob":{"age":4,"name":"x"}}`, `{<key>: {age: int, name?: str}}`, ""},
	{"a map of addresses", `{"a@b.c":1,"name":2}`, `{name: int, <key>: int}`, ""},
	{"a record with a word of its own", `{"id":1,"kundennummer":7}`, `{id: int, kundennummer: int}`, `{id: int, <key>: int}`},
	{"identifiers beside fields", `{"id":1,"c-00017":7}`, `{id: int, <key>: int}`, ""},
	{
		"a log", "2026-01-02T03:04:05Z INFO [svc-1] started bob\n2026-01-02T03:04:06Z ERROR [svc-2] no such user alice\n2026-01-02T03:04:06Z WARN [svc-2] x\n",
		`text: <time> INFO|ERROR|WARN […] …`, "",
	},
	{"Markdown", "# Secret title\n\n- one\n- two\n", `text: - … / # …`, ""},
	{"labels", "Name: Bob\nStatus: ok\nhunter2: x\n", `text: Name: … / Status: … / …`, ""},
	{"binary", "\x89PNG\r\n\x1a\n\x00\x00", `text`, ""},
	{"text that begins as JSON", "[INFO] hello\n[INFO] world\n", `text: [INFO] …`, ""},
	{"broken JSON", `{"id": 1, "name": `, `text: … <n> …`, ""},
}

func TestResultShape(t *testing.T) {
	known := shape.Common()
	for _, c := range resultShapes {
		t.Run(c.name, func(t *testing.T) {
			got, err := preview.ResultShape([]byte(c.data), false, false, known)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != c.brief {
				t.Errorf("got  %s\nwant %s", got, c.brief)
			}
			disk := cmp.Or(c.disk, c.brief)
			written, err := json.Marshal(got.Writable(known))
			if err != nil {
				t.Fatal(err)
			}
			var read shape.Result
			if err := json.Unmarshal(written, &read); err != nil {
				t.Fatal(err)
			}
			if s := read.Writable(known).String(); s != disk {
				t.Errorf("disk has %s\nwant     %s", s, disk)
			}
		})
	}
}

// TestTextShape: text is JSON only where it is one whole object or array.
func TestTextShape(t *testing.T) {
	for data, want := range map[string]string{
		`{"id":1}` + "\n":        "{id: int}",
		"[1]":                    "[int]",
		"12\n":                   "text: <n>",
		"null":                   "text: …",
		`"q"`:                    "text: …",
		"{\"id\":1}\n{\"id\":2}": "text: …",
		"1\n2\n":                 "text: <n>",
		"[1,2][3]":               "text: […]",
	} {
		got, err := preview.ResultShape([]byte(data), false, true, shape.Common())
		if err != nil || got.String() != want {
			t.Errorf("%q: got %s, %v, want %s", data, got, err, want)
		}
	}
}

// TestShapeOfBeginning: what is cut off makes no field optional and no JSON text.
func TestShapeOfBeginning(t *testing.T) {
	var b strings.Builder
	b.WriteString("[")
	for i := range 10_000 {
		fmt.Fprintf(&b, `{"id":%d,"name":"n%d","tags":["x"]},`, i, i)
	}
	whole := b.String()
	for _, n := range []int{len(whole) / 2, len(whole)/2 + 7, len(whole)/2 + 23, 300_001} {
		got, err := preview.ResultShape([]byte(whole[:n]), true, n%2 == 0, shape.Common())
		if err != nil || got.String() != "[{id: int, name: str, tags: [str]}]" {
			t.Errorf("cut at %d: got %s, %v", n, got, err)
		}
	}
}

func FuzzResultShape(f *testing.F) {
	for _, c := range resultShapes {
		f.Add([]byte(c.data), false)
	}
	known := shape.Common()
	f.Fuzz(func(t *testing.T, data []byte, cut bool) {
		got, err := preview.ResultShape(data, cut, false, known)
		if err != nil || !got.Known() {
			t.Fatalf("got %v, %v", got, err)
		}
		if n := len([]rune(got.Brief(300))); n > 300 {
			t.Errorf("%d characters", n)
		}
		disk := got.Writable(known)
		if again := shape.MergeResults(disk, disk); !shape.Same(again, disk) {
			t.Errorf("merged with itself %s became %s", disk, again)
		}
		if again := disk.Writable(known); !shape.Same(again, disk) {
			t.Errorf("written twice, %s became %s", disk, again)
		}
	})
}

func BenchmarkResultShape(b *testing.B) {
	var data []byte
	for i := 0; len(data) < 256<<10; i++ {
		data = fmt.Appendf(data, "{\"id\":%d,\"name\":\"item %d\",\"tags\":[\"a\",\"b\"],\"owner\":{\"login\":\"u%d\",\"ok\":true}}\n", i, i, i)
	}
	known := shape.Common()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := preview.ResultShape(data, true, false, known); err != nil {
			b.Fatal(err)
		}
	}
}
