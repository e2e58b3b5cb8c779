package programs_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

// TestPages: each program has a page, whose options are those of its grammar and whose stages are accepted.
func TestPages(t *testing.T) {
	for _, p := range programs.All() {
		page, err := programs.Added(nil).PageOf(p.Name)
		if err != nil {
			t.Fatal(err)
		}
		text := page.String()
		for _, a := range programs.AllowedOptions(p) {
			if words := strings.FieldsFunc(text, separates); !slices.Contains(words, a.Option) && !strings.HasSuffix(a.Option, "NUM") {
				t.Errorf("%s: the page lacks the option %s:\n%s", p.Name, a.Option, text)
			}
		}
		for _, stage := range []string{page.Example, page.Inputs} {
			if stage == "" {
				continue
			}
			var s struct {
				Command string
				Args    []string
				Inputs  map[string]any
			}
			if err := json.Unmarshal([]byte(strings.ReplaceAll(stage, "STAGES", "{}")), &s); err != nil {
				t.Fatalf("%s: %s: %v", p.Name, stage, err)
			}
			there := programs.Given{Files: p.FilesOnly}
			for name := range s.Inputs {
				there.Inputs = append(there.Inputs, name)
			}
			if _, err := programs.Parse(s.Command, s.Args, there); err != nil {
				t.Errorf("%s: the example %s: %v", p.Name, stage, err)
			}
		}
		for line := range strings.Lines(text) {
			if n := len([]rune(line)); n > 140 || strings.Contains(line, "%!") || strings.Contains(line, "; \n") {
				t.Errorf("%s: %q (%d characters)", p.Name, line, n)
			}
		}
	}
	if _, err := programs.Added(nil).PageOf("jqq"); err == nil || !strings.Contains(err.Error(), "jqq") {
		t.Errorf("a page that is not there: %v", err)
	}
}

func separates(c rune) bool { return strings.ContainsRune(" \n,:;=[]", c) }

// TestCommandsDocument: docs/commands.md is the pages, word by word.
func TestCommandsDocument(t *testing.T) {
	const file = "../../docs/commands.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const mark = "<!-- the pages of mcsh commands -->\n"
	head, got, ok := strings.Cut(string(text), mark)
	if !ok {
		t.Fatalf("%s has no %q", file, mark)
	}
	var want strings.Builder
	for _, p := range programs.All() {
		want.WriteString("\n## " + p.Name + "\n\n```text\n" + p.Page().String() + "```\n")
	}
	if *update {
		if err := os.WriteFile(file, []byte(head+mark+want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(want.String(), got); diff != "" {
		t.Errorf("run go test ./sandbox/programs -run TestCommandsDocument -update (-want +got):\n%s", diff)
	}
}

// A differingRow is a program for which this jq and the one in C give different outputs.
type differingRow struct {
	Says string   `json:"says"` // how the sentence of the page begins
	Args []string `json:"args"`
	In   string   `json:"in"`
	Out  string   `json:"out"` // of this jq: standard output, or standard error where it fails
}

// TestJQDiffers: what the page of jq says of the jq in C is so, for each sentence.
func TestJQDiffers(t *testing.T) {
	const file = "testdata/jqdiffers.json"
	path, err := exec.LookPath("jq")
	if err != nil {
		parttest.Missing(t, "jq is not installed")
	}
	p, _ := programs.Find("jq")
	rows := readJSON[[]differingRow](t, file)
	shown := map[string]bool{}
	for i, r := range rows {
		at := slices.IndexFunc(p.Differs, func(s string) bool { return strings.HasPrefix(s, r.Says) })
		if at < 0 {
			t.Fatalf("the page has no sentence that begins with %q", r.Says)
		}
		shown[p.Differs[at]] = true
		var got bytes.Buffer
		msg, exit := runJQ(t, r.Args, strings.NewReader(r.In), &got)
		if rows[i].Out = got.String(); exit != 0 {
			rows[i].Out = msg
		}
		if diff := cmp.Diff(r.Out, rows[i].Out); diff != "" && !*update {
			t.Errorf("jq %q < %q (-want +got):\n%s", r.Args, r.In, diff)
		}
		cmd := exec.CommandContext(t.Context(), path, r.Args...)
		cmd.Env, cmd.Stdin = []string{"A=1"}, strings.NewReader(r.In)
		if c, _ := cmd.Output(); string(c) == got.String() { // it may fail
			t.Errorf("jq %q < %q: both write %q", r.Args, r.In, c)
		}
	}
	for _, sentence := range p.Differs {
		if !shown[sentence] {
			t.Errorf("no example shows: %s", sentence)
		}
	}
	if *update {
		writeRows(t, file, rows)
	}
}

// TestArgumentNotes: a plan warns of arguments whose characters are more than the bytes that a program works on.
func TestArgumentNotes(t *testing.T) {
	for _, tt := range []struct {
		command string
		args    []string
		says    string
	}{
		{"tr", []string{"ë", "e"}, "'ë' is 2 of them"},
		{"tr", []string{"-d", "a€"}, "'€' is 3 of them"},
		{"tr", []string{"a-z", "A-Z"}, ""},
		{"cut", []string{"-c", "1-3"}, "counts bytes"},
		{"cut", []string{"-b", "1-3"}, ""},
		{"cut", []string{"-d", ",", "-f", "1"}, ""},
	} {
		inv, err := programs.Parse(tt.command, tt.args, programs.Given{})
		if err != nil || !strings.Contains(inv.Traits.Note, tt.says) || (tt.says == "") != (inv.Traits.Note == "") {
			t.Errorf("%s %q: note %q, error %v, want %q", tt.command, tt.args, inv.Traits.Note, err, tt.says)
		}
	}
}
