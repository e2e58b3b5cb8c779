package programs_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/stages"
)

// A mistake is one row of testdata/mistakes.json: a filter of jq that is wrong or fails, what is said of it, and the hint.
type mistake struct {
	Why    string      `json:"why"`
	Flags  string      `json:"flags,omitempty"`
	Filter string      `json:"filter"`
	Input  string      `json:"input,omitempty"`
	Code   stages.Code `json:"code"`
	Field  string      `json:"field,omitempty"` // where in the stage, of what its check finds
	Says   string      `json:"says"`
	Hint   string      `json:"hint"`
}

// TestHints: each mistake is recognized by what jq says of it.
func TestHints(t *testing.T) {
	const file = "testdata/mistakes.json"
	rows := readJSON[[]mistake](t, file)
	if len(rows) < 150 {
		t.Errorf("%d mistakes", len(rows))
	}
	for i, want := range rows {
		rows[i] = want.make(t)
		if diff := cmp.Diff(want, rows[i]); diff != "" && !*update {
			t.Errorf("%s (-want +got):\n%s", want.Why, diff)
		}
	}
	if *update {
		writeRows(t, file, rows)
	}
}

// make makes the mistake.
func (m mistake) make(t *testing.T) mistake {
	t.Helper()
	args := append(strings.Fields(m.Flags), m.Filter)
	got := mistake{Why: m.Why, Flags: m.Flags, Filter: m.Filter, Input: m.Input}
	inv, err := check("jq", args)
	if err != nil {
		var e *stages.Error
		if !errors.As(err, &e) {
			t.Fatalf("%s: got %v", m.Why, err)
		}
		got.Code, got.Field, got.Hint = e.Code, e.Field, e.Hint
		got.Says, _, _ = strings.Cut(e.Msg, "\n")
		return got
	}
	p, _ := programs.Find("jq")
	var out, said bytes.Buffer
	if code := run(context.Background(), p, inv.Argv[1:], nil, strings.NewReader(m.Input), &out, &said); code == 0 {
		t.Errorf("%s: this is no mistake: %s", m.Why, out.String())
	}
	got.Code, got.Says = stages.CommandFailed, strings.TrimSpace(said.String())
	got.Hint = programs.Hint("jq", programs.Complaint{Args: args, Message: said.String(), Sample: []byte(m.Input)})
	return got
}

// FuzzHint: whatever a program says of whatever input, a hint is short.
func FuzzHint(f *testing.F) {
	for _, row := range readJSON[[]mistake](f, "testdata/mistakes.json") {
		f.Add("jq", row.Flags+"\x1f"+row.Filter, row.Says, row.Input)
	}
	f.Add("sed", "s/a", "sed: -e expression #1, char 3: unterminated `s' command", "")
	f.Add("jq", "-c", "jq: error (at <stdin>:1): expected an object but got: array ([1])", strings.Repeat("[", 100_000))
	f.Add("jq", "-c", "jq: error (at <stdin>:1): expected an object but got: array ([1])", `{"${1}":[1],"`+strings.Repeat("x", 5000)+`":1}`)
	f.Fuzz(func(t *testing.T, name, args, said, input string) {
		hint := programs.Hint(name, programs.Complaint{Args: strings.Split(args, "\x1f"), Message: said, Sample: []byte(input)})
		if len(hint) > 1000 {
			t.Errorf("a hint of %d bytes", len(hint))
		}
	})
}
