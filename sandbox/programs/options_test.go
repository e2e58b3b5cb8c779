package programs_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

// optionHere stands in the arguments of an optionRow for the option and its values.
const optionHere = "{}"

// An optionRow shows one allowed option at work.
type optionRow struct {
	Command string            `json:"command"`
	Option  string            `json:"option"` // as programs.AllowedOptions names it
	Values  []string          `json:"values"` // of the option
	Args    []string          `json:"args"`   // around it; optionHere alone if there are none
	In      string            `json:"in"`
	Inputs  map[string]string `json:"inputs"`
	Files   map[string]string `json:"files"` // of the workspace

	Mask    string `json:"mask"`    // a regular expression: what it finds in outputs is not compared
	Same    string `json:"same"`    // why the output is the same without the option
	Differs string `json:"differs"` // why the tool's output is another one with the option as it was given
	Apart   string `json:"apart"`   // why the tool is asked only with the value as a word of its own
	Out     string `json:"out"`     // what the canonical arguments give, where there is no tool to ask
	Why     string `json:"why"`     // there is none
}

// args puts the words of the option between the others.
func (r optionRow) args(option []string) (args []string) {
	if r.Args == nil {
		return option
	}
	for _, arg := range r.Args {
		if arg == optionHere {
			args = append(args, option...)
		} else {
			args = append(args, arg)
		}
	}
	return args
}

// ways returns all arguments that mean the same.
func (r optionRow) ways(a programs.Allowed) (all [][]string) {
	for _, way := range append(a.Long(r.Values), a.Short(r.Values)...) {
		all = append(all, r.args(way))
	}
	i := slices.Index(r.Args, optionHere)
	if i != 1 || len(r.Args[0]) != 2 {
		return all
	}
	// A flag stands before the option: both make a cluster.
	joined := r
	joined.Args = r.Args[1:]
	for _, way := range a.Short(r.Values) {
		way[0] = r.Args[0] + way[0][1:]
		all = append(all, joined.args(way))
	}
	return all
}

// files writes the files of the named inputs.
func (r optionRow) files(t *testing.T) string {
	dir := t.TempDir()
	for name, text := range r.Files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range r.Inputs {
		if err := os.WriteFile(filepath.Join(dir, "@"+name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// masked returns a result in a form that can be compared.
func (r optionRow) masked(out string, code int) string {
	if r.Mask != "" {
		out = regexp.MustCompile(r.Mask).ReplaceAllString(out, "…")
	}
	return fmt.Sprintf("%q, exit status %d", out, code)
}

// original runs the real tool with arguments as they were given.
func (r optionRow) original(t *testing.T, p programs.Program, args []string) string {
	argv := append([]string{cmp.Or(p.Bin, p.Name)}, args...)
	if p.Name == "jq" {
		argv = slices.Insert(argv, 1, "-S") // keys are always sorted here
	}
	dir := r.files(t)
	return r.masked(tool(t, dir, r.In, argv))
}

// canonical runs what a worker runs.
func (r optionRow) canonical(t *testing.T, p programs.Program, inv programs.Invocation) string {
	if p.Bin == "" {
		var out bytes.Buffer
		input := func(name string) (io.Reader, error) { return strings.NewReader(r.Inputs[name]), nil }
		code := run(t.Context(), p, inv.Argv[1:], input, strings.NewReader(r.In), &out, &out)
		return r.masked(out.String(), code)
	}
	dir := r.files(t)
	return r.masked(tool(t, dir, r.In, inv.Argv))
}

// optionRows are those of the file, and one for each option that prints a version.
func optionRows(t *testing.T) []optionRow {
	rows := readJSON[[]optionRow](t, "testdata/options.json")
	for _, p := range programs.All() {
		for _, a := range programs.AllowedOptions(p) {
			if !a.Version {
				continue
			}
			r := optionRow{Command: p.Name, Option: a.Option}
			if p.Bin == "" || a.Option == "-V" && p.Name == "rg" {
				r.Differs = "another version is behind the name, or the tool says less of it"
			}
			rows = append(rows, r)
		}
	}
	return rows
}

func (r optionRow) test(t *testing.T, p programs.Program, a programs.Allowed) {
	inputs := slices.Sorted(maps.Keys(r.Inputs))
	var argv []string // canonical
	var got string
	for _, args := range r.ways(a) {
		inv, err := programs.Parse(r.Command, args, programs.Given{Inputs: inputs, Files: r.Files != nil || p.FilesOnly})
		switch {
		case err != nil:
			t.Errorf("%q: %v", args, err)
			continue
		case argv == nil:
			argv, got = inv.Argv, r.canonical(t, p, inv)
		case !slices.Equal(argv, inv.Argv):
			t.Errorf("%q becomes %q, but the same in other words %q", args, inv.Argv, argv)
		}
		if r.Apart != "" && !slices.Contains(args, r.Values[0]) {
			continue
		}
		want := r.masked(r.Out, 0)
		if r.Why == "" {
			want = r.original(t, p, args)
		}
		if (got == want) != (r.Differs == "") {
			t.Errorf("%q\n  as given: %s\n  as %q: %s\n  want a difference: %q", args, want, argv, got, r.Differs)
		}
	}
	without := r.original(t, p, r.args(nil))
	if (got == without) != (a.Ignored || r.Same != "") {
		t.Errorf("%q: %s\n  and without %s: %s; ignored: %v, same: %q", argv, got, a.Option, without, a.Ignored, r.Same)
	}
}

// TestEveryOptionHasARow: no option is allowed that has not been seen at work.
func TestEveryOptionHasARow(t *testing.T) {
	rows := optionRows(t)
	for _, p := range programs.All() {
		for _, a := range programs.AllowedOptions(p) {
			if !slices.ContainsFunc(rows, func(r optionRow) bool { return r.Command == p.Name && r.Option == a.Option }) {
				t.Errorf("%s %s is allowed, but testdata/options.json has no row that shows what it does", p.Name, a.Option)
			}
		}
	}
}
