package stages_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/stages"
)

// TestDryRun: stages that only read run; a tool that may change something is not called, and the report has its
// arguments.
func TestDryRun(t *testing.T) {
	const (
		write   = `{"type":"tool","server":"demo","name":"write"}`
		each    = `{"type":"tool","server":"demo","name":"write","for_each":true}`
		get     = `{"type":"tool","server":"demo","name":"get"}`
		say     = `{"type":"tool","server":"demo","name":"say"}`
		numbers = `{"type":"tool","server":"demo","name":"numbers","args":{"n":2}}`
		cat     = `{"type":"command","command":"cat"}`
	)
	for _, tt := range []struct {
		name, pipeline, input string
		want                  string // the dry run as JSON, or the error
		reads                 int    // calls of tools that read
	}{
		{"nothing changes", `[` + numbers + `]`, "", `{"before":1,"after":0}`, 1},
		{
			"a tool", `[` + numbers + `,` + cat + `,` + write + `,` + cat + `]`, "",
			`{"stage":"3","label":"tool demo/write","before":2,"after":1,"calls":[{"stage":"3","label":"tool demo/write","count":1,"first":[{"x":"1\n2"}]}]}`, 1,
		},
		{
			"the first stage", `[{"type":"tool","server":"demo","name":"write","args":{"x":1}},` + each + `]`, "",
			`{"stage":"1","label":"tool demo/write","before":0,"after":1,"calls":[{"stage":"1","label":"tool demo/write","count":1,"first":[{"x":1}]}]}`, 0,
		},
		{
			"for_each", `[` + each + `]`, lines(2),
			`{"stage":"1","label":"tool demo/write","before":0,"after":0,"calls":[{"stage":"1","label":"tool demo/write","count":2,"first":[{"x":"0"},{"x":"1"}]}]}`, 0,
		},
		{
			"equal calls", `[{"type":"tool","server":"demo","name":"write","for_each":true,"distinct":true}]`, lines(2) + lines(1),
			`{"stage":"1","label":"tool demo/write","before":0,"after":0,"calls":[{"stage":"1","label":"tool demo/write","count":2,"first":[{"x":"0"},{"x":"1"}]}]}`, 0,
		},
		{"no items", `[{"type":"command","command":"drop"},` + each + `]`, lines(2), `{"stage":"2","label":"tool demo/write","before":1,"after":0,"calls":[{"stage":"2","label":"tool demo/write","count":0}]}`, 0},
		{
			"within a for_each", `[{"type":"for_each","concurrency":1,"stages":[` + say + `,` + write + `,` + cat + `,` + write + `]}]`, lines(2),
			`{"stage":"1","label":"for_each","before":0,"after":0,"calls":[{"stage":"1.2","label":"tool demo/write","count":2,"first":[{"x":"0"},{"x":"1"}]}]}`, 2,
		},
		{
			"the first calls are those of the first items", `[{"type":"for_each","concurrency":8,"stages":[` + each + `]}]`, strings.Repeat("[\"a1\",\"a2\"] [\"b1\",\"b2\"] ", 50),
			`{"stage":"1","label":"for_each","before":0,"after":0,"calls":[{"stage":"1.1","label":"tool demo/write","count":200,"first":[{"x":"a1"},{"x":"a2"},{"x":"b1"}],"shape":"=== PREVIEW (not valid JSON: shape of the data) ===\nJSON Lines: 200 documents, 2.2kB. Paths are per document (jq -c; jq -s makes one array).\n. {1}\n .x \"a1\"×50|\"a2\"×50|\"b1\"×50|\"b2\"×50\nsample: {\"x\":\"a1\"}\n=== END PREVIEW ===\n"}]}`, 0,
		},
		{
			"branches", `[{"type":"parallel","branches":{"a":[` + get + `],"b":[` + cat + `,` + write + `],"c":[` + write + `]}},` + cat + `]`, "7",
			`{"stage":"1","label":"parallel","before":0,"after":1,"calls":[{"stage":"1.b.2","label":"tool demo/write","count":1,"first":[{"x":"7"}]},{"stage":"1.c.1","label":"tool demo/write","count":1,"first":[{"x":"7"}]}]}`, 1,
		},
		{
			"inputs of a command", `[` + numbers + `,{"type":"command","command":"append","args":["@w"],"inputs":{"w":[` + numbers + `,` + write + `]}}]`, "",
			`{"stage":"2","label":"command append","before":1,"after":0,"calls":[{"stage":"2.w.2","label":"tool demo/write","count":1,"first":[{"x":"1\n2\n"}]}]}`, 2,
		},
		{"a guard", `[{"type":"command","command":"fail-at","args":["2"]},` + each + `]`, lines(3), "COMMAND_FAILED at 1: cannot bear 2", 0},
		{
			"arguments that do not fit", `[` + each + `]`, `{"x":1} {"y":1}`, `INVALID_ARGUMENTS at 1 item 2: missing "x"; the arguments were {} (left out: "y")`, 0,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			out, report, err := w.runWith(t, tt.pipeline, tt.input, w.deps(), stages.RunOptions{DryRun: true})
			got := ""
			if e, ok := err.(*stages.Error); ok {
				got = fmt.Sprintf("%s at %s", e.Code, e.Place)
				if e.Item > 0 {
					got += fmt.Sprintf(" item %d", e.Item)
				}
				got += ": " + e.Msg
			} else if raw, err := json.Marshal(report.DryRun); err != nil {
				t.Fatal(err)
			} else {
				got = string(raw)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if calls := w.callsOf("write"); len(calls) > 0 {
				t.Errorf("it was called: %v", calls)
			}
			if n := len(w.callsOf("get")) + len(w.callsOf("say")) + len(w.callsOf("numbers")); n != tt.reads {
				t.Errorf("%d reading calls, want %d", n, tt.reads)
			}
			if report.DryRun != nil && report.DryRun.Place != "" && out != "" {
				t.Errorf("there is output: %q", out)
			}
		})
	}
}

// TestDryRunShape: of many calls the first three are shown, in the order of the items, and the shape of all.
func TestDryRunShape(t *testing.T) {
	w := newWorld()
	_, report, err := w.runWith(t, `[{"type":"tool","server":"demo","name":"write","for_each":true,"concurrency":16}]`, lines(5000),
		w.deps(), stages.RunOptions{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	c := report.DryRun.Calls[0]
	if got := string(bytes.Join([][]byte{c.First[0], c.First[1], c.First[2]}, nil)); c.Count != 5000 || len(c.First) != 3 || got != `{"x":"0"}{"x":"1"}{"x":"2"}` {
		t.Errorf("%d calls, first %s", c.Count, got)
	}
	if !strings.Contains(c.Shape, "5000 documents") || len(c.Shape) > 1300 {
		t.Errorf("shape of %d bytes: %s", len(c.Shape), c.Shape)
	}
}

// TestDryRunTee: of a tee a dry run shows the file, whether it is written behind what is there, and how much it would be;
// nothing is saved.
func TestDryRunTee(t *testing.T) {
	w := newWorld()
	w.withFiles(t, "")
	const many = `{"type":"tool","server":"demo","name":"numbers","args":{"n":200000}}`
	const tooMuch = `1288895 bytes are more than 1 MiB: add "confirm_oversize": true if all of that is to be saved`
	for _, tt := range []struct{ before, stage, want, fails string }{
		{numbers5, `{"type":"tee","path":"out/a.txt"}`, `{"path":"out/a.txt","append":false,"bytes":10}`, ""},
		{numbers5, `{"type":"tee","path":"b.txt","append":true}`, `{"path":"b.txt","append":true,"bytes":10}`, ""},
		{many, `{"type":"tee","path":"c.txt"}`, `{"path":"c.txt","append":false,"bytes":1288895}`, tooMuch},
		{many, `{"type":"tee","path":"c.txt","confirm_oversize":true}`, `{"path":"c.txt","append":false,"bytes":1288895}`, ""},
	} {
		_, report, err := w.runWith(t, "["+tt.before+","+tt.stage+",{\"type\":\"command\",\"command\":\"cat\"}]", "", w.deps(), stages.RunOptions{DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		d := report.DryRun
		if len(d.Calls) != 1 || d.Place != "2" || d.Calls[0].Count != 1 || len(d.Calls[0].First) != 1 || string(d.Calls[0].First[0]) != tt.want || d.Calls[0].Fails != tt.fails {
			t.Errorf("got %+v, want %s, failing: %q", d, tt.want, tt.fails)
		}
	}
	if saved := w.saved(t); saved != "" {
		t.Errorf("saved:\n%s", saved)
	}
}
