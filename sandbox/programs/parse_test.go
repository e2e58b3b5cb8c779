package programs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/stages"
)

var update = flag.Bool("update", false, "write what the tables of testdata should hold")

// A row is an argv with what becomes of it.
type row struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Inputs  []string `json:"inputs,omitempty"`

	Argv  []string `json:"argv,omitempty"`
	Timer string   `json:"timer,omitempty"`
	Stops bool     `json:"stops,omitempty"`
	Maps  bool     `json:"maps,omitempty"`

	Part *programs.Part `json:"part,omitempty"`

	Code stages.Code `json:"code,omitempty"`
	Msg  string      `json:"msg,omitempty"`
	Hint string      `json:"hint,omitempty"`

	Fix json.RawMessage `json:"fix,omitempty"` // what the stage should have instead

	// Differs says why the tool does something else with the canonical argv than with the one that was given.
	Differs string `json:"differs,omitempty"`
}

func parse(t *testing.T, command string, args, inputs []string) (r row) {
	t.Helper()
	r = row{Command: command, Args: args, Inputs: inputs}
	inv, err := check(command, args, inputs...)
	if err == nil {
		sorted := slices.Sorted(slices.Values(inv.Inputs))
		if !slices.Equal(sorted, inputs) {
			t.Errorf("Parse(%q, %q): reads the inputs %q, want %q", command, args, sorted, inputs)
		}
		r.Argv, r.Part = inv.Argv, inv.Part
		if inv.Timer > 0 {
			r.Timer = inv.Timer.String()
		}
		r.Stops, r.Maps = inv.Traits.StopsEarly, inv.Traits.MapsLines
		return r
	}
	var e *stages.Error
	if !errors.As(err, &e) {
		t.Fatalf("Parse(%q, %q): error %T, want *stages.Error", command, args, err)
	}
	r.Code, r.Msg, r.Hint, r.Fix = e.Code, e.Msg, e.Hint, e.Fix
	if e.Fix != nil {
		fixed := struct {
			Command string
			Args    []string
		}{command, slices.Clone(args)}
		if err := json.Unmarshal(e.Fix, &fixed); err != nil {
			t.Errorf("Parse(%q, %q): the correction is no JSON: %v", command, args, err)
		} else if _, err := programs.Parse(fixed.Command, fixed.Args, programs.Given{Inputs: inputs}); err != nil { // what no grammar reads is checked when it comes
			t.Errorf("Parse(%q, %q): the correction %s is refused: %v", command, args, e.Fix, err)
		}
	}
	return r
}

func readJSON[T any](t testing.TB, file string) (v T) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return v
}

// writeRows writes one row a line.
func writeRows[T any](t *testing.T, file string, rows []T) {
	t.Helper()
	var b bytes.Buffer
	for i, r := range rows {
		var line bytes.Buffer
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(r); err != nil {
			t.Fatal(err)
		}
		b.WriteString([]string{"[\n", ",\n"}[min(i, 1)])
		b.Write(bytes.TrimSpace(line.Bytes()))
	}
	b.WriteString("\n]\n")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestParse compares what becomes of argvs with the tables: accepted.json holds the canonical argvs, refused.json the
// words of the refusals.
func TestParse(t *testing.T) {
	for _, file := range []string{"testdata/accepted.json", "testdata/refused.json"} {
		rows := readJSON[[]row](t, file)
		got := make([]row, len(rows))
		for i, want := range rows {
			got[i] = parse(t, want.Command, want.Args, want.Inputs)
			got[i].Differs = want.Differs
			if accepted := got[i].Code == ""; accepted != strings.Contains(file, "accepted") {
				t.Errorf("%s: %s %q: accepted = %v (%s)", file, want.Command, want.Args, accepted, got[i].Msg)
			}
			if diff := cmp.Diff(want, got[i]); diff != "" && !*update {
				t.Errorf("%s: %s %q (-want +got):\n%s", file, want.Command, want.Args, diff)
			}
		}
		if *update {
			writeRows(t, file, got)
		}
	}
}

// TestRefusalsHelp: a refusal says what was wrong in the style of the house, and what to do.
func TestRefusalsHelp(t *testing.T) {
	for _, r := range readJSON[[]row](t, "testdata/refused.json") {
		got := parse(t, r.Command, r.Args, r.Inputs)
		if got.Hint == "" && !strings.Contains(got.Msg, "syntax error") {
			t.Errorf("%s %q: no hint (%s)", r.Command, r.Args, got.Msg)
		}
		if strings.HasSuffix(got.Msg, ".") || got.Msg != "" && got.Msg[0] >= 'A' && got.Msg[0] <= 'Z' {
			t.Errorf("%s %q: message %q", r.Command, r.Args, got.Msg)
		}
		if len(got.Msg) > 1000 || len(got.Hint) > 3000 {
			t.Errorf("%s: message of %d and hint of %d bytes", r.Command, len(got.Msg), len(got.Hint))
		}
	}
}

// TestAttacks: argvs that would read, write, run or wait for ever are refused before anything runs.
func TestAttacks(t *testing.T) {
	type attack struct {
		ID, Command, Want string
		Args              []string
	}
	attacks := readJSON[[]attack](t, "testdata/attacks.json")
	if len(attacks) < 50 {
		t.Fatalf("%d attacks", len(attacks))
	}
	for _, a := range attacks {
		if inv, err := check(a.Command, a.Args); err == nil {
			t.Errorf("%s: %s %.200q was accepted as %.200q, want %s", a.ID, a.Command, a.Args, inv.Argv, a.Want)
		}
	}
}

// reparse checks that a canonical argv is parsed to itself.
func reparse(t *testing.T, command string, argv, inputs []string) {
	t.Helper()
	again, err := check(command, argv[1:], inputs...)
	if err != nil {
		t.Errorf("%s: canonical argv %q is refused: %v", command, argv, err)
		return
	}
	if !slices.Equal(again.Argv, argv) {
		t.Errorf("%s: canonical argv %q becomes %q", command, argv, again.Argv)
	}
}

func TestCanonicalIsStable(t *testing.T) {
	for _, r := range readJSON[[]row](t, "testdata/accepted.json") {
		inv, err := check(r.Command, r.Args, r.Inputs...)
		if err != nil {
			t.Errorf("%s %q: %v", r.Command, r.Args, err)
			continue
		}
		reparse(t, r.Command, inv.Argv, r.Inputs)
		reparse(t, r.Command, inv.LineBuffered().Argv, r.Inputs)
	}
}

// exampleInputs are the named inputs of a program's example.
func exampleInputs(p programs.Program) []string {
	if slices.Contains(p.Example, "@b") {
		return []string{"b"}
	}
	return nil
}

// TestTable: the table is sorted and every row is complete.
func TestTable(t *testing.T) {
	all := programs.All()
	if !slices.IsSortedFunc(all, func(a, b programs.Program) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the table is not sorted by name")
	}
	for _, p := range all {
		if got, ok := programs.Find(p.Name); !ok || got.Name != p.Name {
			t.Errorf("Find(%q) = %q, %v", p.Name, got.Name, ok)
		}
		if p.Summary == "" || p.Bin == "" && p.Ready == nil || (p.Bin == "") != (p.Package == "") || (p.Bin == "") != (p.Mark == "") {
			t.Errorf("%s: the row is not complete: %+v", p.Name, p)
		}
		there := programs.Given{Inputs: exampleInputs(p), Files: p.FilesOnly}
		if _, err := programs.Parse(p.Name, p.Example, there); err != nil {
			t.Errorf("%s: its example is refused: %v", p.Name, err)
		}
		if _, err := programs.Parse(p.Name, []string{"--version"}, programs.Given{Files: p.FilesOnly}); err != nil {
			t.Errorf("%s --version: %v", p.Name, err)
		}
	}
	for _, name := range []string{"", "cat", "find", "xargs", "tee", "split", "env", "dc", "Sort", "sort "} {
		if _, ok := programs.Find(name); ok {
			t.Errorf("Find(%q) found something", name)
		}
	}
}

// TestBounds: there is a limit to how many arguments there may be, also within clusters, and to their size.
func TestBounds(t *testing.T) {
	for _, tt := range []struct {
		args []string
		ok   bool
	}{
		{slices.Repeat([]string{"-u"}, 256), true},
		{slices.Repeat([]string{"-u"}, 257), false},
		{[]string{"-" + strings.Repeat("u", 256)}, true},
		{[]string{"-" + strings.Repeat("u", 257)}, false},
		{[]string{"-k1", "-t", "\x00" + strings.Repeat("x", 10)}, false},
		{[]string{"-", "-", strings.Repeat("x", 64<<10)}, false},
		{[]string{"-u\x00"}, false},
	} {
		if _, err := check("sort", tt.args); (err == nil) != tt.ok {
			t.Errorf("sort with %d arguments: accepted = %v (%v)", len(tt.args), err == nil, err)
		}
	}
	big := strings.Repeat("x", 64<<10)
	if _, err := check("grep", []string{big}); err != nil {
		t.Errorf("64 KiB: %v", err)
	}
	if _, err := check("grep", []string{big + "x"}); err == nil {
		t.Error("more than 64 KiB are accepted")
	}
}

func TestLineBuffered(t *testing.T) {
	tests := []struct {
		command string
		args    []string
		want    []string
	}{
		{"grep", []string{"x"}, []string{"grep", "--color=never", "--text", "--line-buffered", "--regexp=x"}},
		{"sed", []string{"p"}, []string{"sed", "--sandbox", "--unbuffered", "--expression=p"}},
		{"rg", []string{"x"}, []string{"rg", "--no-config", "--no-ignore", "--color=never", "--threads=1", "--text", "--encoding=none", "--line-buffered", "--regexp=x", "--", "-"}},
		{"grep", []string{"--version"}, []string{"grep", "--version"}},
		{"cut", []string{"-f1"}, []string{"cut", "--fields=1"}},
	}
	for _, tt := range tests {
		inv, err := check(tt.command, tt.args)
		if err != nil {
			t.Fatal(err)
		}
		before := slices.Clone(inv.Argv)
		if diff := cmp.Diff(tt.want, inv.LineBuffered().Argv); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.command, diff)
		}
		if !slices.Equal(before, inv.Argv) {
			t.Errorf("%s: LineBuffered changed what it was called on", tt.command)
		}
	}
}

func TestGathers(t *testing.T) {
	for _, tt := range []struct {
		command string
		args    []string
		want    bool
	}{
		{"sort", nil, true},
		{"sort", []string{"-u", "-k2"}, true},
		{"sort", []string{"-m"}, false},
		{"tac", nil, true},
		{"wc", []string{"-l"}, true},
		{"shuf", []string{"-n", "3"}, true},
		{"uniq", nil, false},
		{"grep", []string{"x"}, false},
		{"tail", []string{"-n", "+2"}, false},
	} {
		inv, err := check(tt.command, tt.args)
		if err != nil {
			t.Fatal(err)
		}
		if got := inv.Traits.Blocking; got != tt.want {
			t.Errorf("%s %s: got %v, want %v", tt.command, tt.args, got, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, file := range []string{"testdata/accepted.json", "testdata/refused.json"} {
		for _, r := range readJSON[[]row](f, file) {
			f.Add(r.Command, strings.Join(r.Args, "\x1f"), strings.Join(r.Inputs, "\x1f"))
		}
	}
	f.Fuzz(func(t *testing.T, command, joined, names string) {
		var args, inputs []string
		if joined != "" {
			args = strings.Split(joined, "\x1f")
		}
		if names != "" {
			inputs = strings.Split(names, "\x1f")
		}
		inv, err := check(command, args, inputs...)
		if err != nil {
			var e *stages.Error
			if !errors.As(err, &e) || e.Msg == "" {
				t.Fatalf("error %#v", err)
			}
			return
		}
		if len(inv.Argv) == 0 {
			t.Fatal("no argv")
		}
		// Injected arguments may lift an argv at the bounds above them.
		if len(inv.Argv) < 200 && len(joined) < 30_000 {
			reparse(t, command, inv.Argv, inputs)
		}
	})
}
