package jq

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mistakenFilter is one row of testdata/mistakes.json: a filter, what jq says of it, the hint, and the filter corrected
// with what it then gives.
type mistakenFilter struct {
	Why    string `json:"why"`
	Flags  string `json:"flags"`
	Filter string `json:"filter"`
	Input  string `json:"input,omitempty"`
	Says   string `json:"says"`
	Hint   string `json:"hint"`
	Fixed  string `json:"fixed,omitempty"`
	Output string `json:"output,omitempty"`
}

// TestMistakes: each mistake is recognized by what jq says of it, and a corrected filter succeeds.
func TestMistakes(t *testing.T) {
	const file = "testdata/mistakes.json"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows []mistakenFilter
	if err := json.Unmarshal(raw, &rows); err != nil {
		t.Fatal(err)
	}
	fixed := 0
	for i := range rows {
		want := rows[i]
		got := want.run(t)
		if got.Fixed != "" {
			fixed++
		}
		rows[i] = got
		if diff := cmp.Diff(want, got); diff != "" && os.Getenv("UPDATE") == "" {
			t.Errorf("%s: (-want +got)\n%s", want.Why, diff)
		}
	}
	if len(rows) < 150 || fixed < 120 {
		t.Errorf("%d mistakes, %d mended", len(rows), fixed)
	}
	if os.Getenv("UPDATE") != "" {
		var b bytes.Buffer
		for i, row := range rows {
			b.WriteString([]string{",\n", "[\n"}[btoi(i == 0)])
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(row); err != nil {
				t.Fatal(err)
			}
			b.Truncate(b.Len() - 1)
		}
		if err := os.WriteFile(file, append(b.Bytes(), "\n]\n"...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// run makes the mistake, asks for advice and follows it.
func (m mistakenFilter) run(t *testing.T) mistakenFilter {
	t.Helper()
	o := flagged(m.Flags, m.Filter)
	got := mistakenFilter{Why: m.Why, Flags: m.Flags, Filter: m.Filter, Input: m.Input}
	f, wrong := Compile(o)
	if wrong != nil {
		got.Says, _, _ = strings.Cut(wrong.Msg, "\n")
		got.Hint, got.Fixed = wrong.Hint, wrong.Fixed
		if got.Fixed != "" {
			if _, err := Compile(flagged(m.Flags, got.Fixed)); err != nil {
				t.Errorf("%s: the corrected filter %s is wrong: %s", m.Why, got.Fixed, err.Msg)
			}
		}
		return got
	}
	var out, said bytes.Buffer
	if code := f.Run(context.Background(), strings.NewReader(m.Input), &out, &said); code == 0 {
		t.Errorf("%s: this is no mistake: %s", m.Why, out.String())
	}
	got.Says = strings.TrimSpace(said.String())
	advice := Advise(o, said.String(), []byte(m.Input), false)
	got.Hint = advice.Hint
	if advice.Fixed == nil {
		return got
	}
	got.Fixed = strings.TrimSpace(flagsOf(*advice.Fixed) + " " + advice.Fixed.Filter)
	f, wrong = Compile(*advice.Fixed)
	if wrong != nil {
		t.Errorf("%s: the corrected filter %s is wrong: %s", m.Why, got.Fixed, wrong.Msg)
		return got
	}
	out.Reset()
	said.Reset()
	if code := f.Run(context.Background(), strings.NewReader(m.Input), &out, &said); code != 0 {
		t.Errorf("%s: the corrected filter %s fails: %s", m.Why, got.Fixed, said.String())
	}
	got.Output = out.String()
	return got
}

func flagged(flags, filter string) Options {
	return Options{
		Filter: filter, NullInput: strings.Contains(flags, "-n"), Slurp: strings.Contains(flags, "-s"),
		RawInput: strings.Contains(flags, "-R"), Raw: strings.Contains(flags, "-r"),
	}
}

func flagsOf(o Options) string {
	var flags []string
	for flag, set := range map[string]bool{"-n": o.NullInput, "-s": o.Slurp, "-R": o.RawInput} {
		if set {
			flags = append(flags, flag)
		}
	}
	return strings.Join(sortedFlags(flags), " ")
}

func sortedFlags(flags []string) []string {
	if len(flags) == 2 && flags[0] > flags[1] {
		flags[0], flags[1] = flags[1], flags[0]
	}
	return flags
}
