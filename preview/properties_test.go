//go:build !race

package preview_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/bench/quality"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/preview"
)

// The properties of previews. P1 (the budget is never exceeded, the text is valid UTF-8) and P11 (nothing acts on a
// terminal) are part of check, which FuzzPreview and TestBudgetIsExactForAllChars call; P2 and P10 (every path is
// true, and found by gojq) are TestEveryPathIsTrue, and TestGates of bench/quality; P4 (reads of any size) is
// TestReadSizesDoNotMatter and FuzzPreview; P7 (profiles can be merged) is TestP7Merge; P9 (memory is bounded) is
// TestMemoryIsBounded. The others are here.

func shapeOf(t *testing.T, data string, chars int) string {
	t.Helper()
	return check(t, []byte(data), preview.Options{Chars: chars, Window: true}).Text
}

func factsOf(t *testing.T, data string, chars int) quality.Facts {
	t.Helper()
	facts, err := quality.Previewed(shapeOf(t, data, chars))
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

// TestP3LargerBudgetsTellMore: hardly a path is lost when there is more room. A few may be, as what does not fit any
// more is tried again one by one.
func TestP3LargerBudgetsTellMore(t *testing.T) {
	for _, set := range quality.Sets() {
		if set.Text {
			continue
		}
		var before quality.Facts
		for _, chars := range []int{300, 500, 800, 1200, 2000, 3000, 5000} {
			now := factsOf(t, set.Data, chars)
			lost := 0
			for path := range before {
				if now[path] == nil {
					lost++
				}
			}
			if 10*lost > len(before)+10 {
				t.Errorf("%s at %d: %d of %d paths are lost", set.Name, chars, lost, len(before))
			}
			before = now
		}
	}
}

// TestP5WhiteSpaceDoesNotMatter compares a compact document with an indented one.
func TestP5WhiteSpaceDoesNotMatter(t *testing.T) {
	for _, set := range quality.Sets() {
		if set.Text || set.Lines {
			continue
		}
		var compact, indented bytes.Buffer
		if err := json.Compact(&compact, []byte(set.Data)); err != nil {
			t.Fatal(err)
		}
		if err := json.Indent(&indented, compact.Bytes(), "\t", "   "); err != nil {
			t.Fatal(err)
		}
		_, want, _ := strings.Cut(shapeOf(t, compact.String(), 2000), "bytes")
		_, got, _ := strings.Cut(shapeOf(t, indented.String(), 2000), "bytes")
		body := func(text string) string { // the header tells the size
			_, rest, _ := strings.Cut(strings.TrimPrefix(text, "=== PREVIEW"), "\n.")
			rest, _, _ = strings.Cut(rest, "\nsample")
			return rest
		}
		if diff := cmp.Diff(body(want), body(got)); diff != "" {
			t.Errorf("%s (-compact +indented)\n%s", set.Name, diff)
		}
	}
}

// TestP6OrderDoesNotMatter shuffles documents: what is claimed stays.
func TestP6OrderDoesNotMatter(t *testing.T) {
	for _, set := range dataSets {
		rng := rand.New(rand.NewPCG(2, 2))
		lines := strings.Split(strings.TrimSpace(set.make(rng)), "\n")
		want := factsOf(t, strings.Join(lines, "\n"), 100_000)
		rng.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		if diff := cmp.Diff(want, factsOf(t, strings.Join(lines, "\n"), 100_000), cmp.AllowUnexported(quality.Fact{})); diff != "" {
			t.Errorf("%s: facts differ when the documents are shuffled\n%s", set.name, diff)
		}
	}
}

// TestP8Determinism makes the same preview ten times, and a hundred times at night.
func TestP8Determinism(t *testing.T) {
	for name, data := range samples() {
		data = data[:min(len(data), 8000)]
		want := shapeOf(t, data, 900)
		for range parttest.Times(9, 99) {
			if got := shapeOf(t, data, 900); got != want {
				t.Fatalf("%s: two previews differ\n%s", name, cmp.Diff(want, got))
			}
		}
	}
}

// canceling cancels at some read, and counts those that come after it.
type canceling struct {
	r      io.Reader
	at     int
	cancel func()
	after  int
}

func (c *canceling) Read(p []byte) (int, error) {
	if c.at--; c.at == 0 {
		c.cancel()
	} else if c.at < 0 {
		c.after++
	}
	return c.r.Read(p[:min(len(p), 4096)])
}

// TestP12CancelEndsAtOnce: nothing is read behind the end of the context, and nothing runs on.
func TestP12CancelEndsAtOnce(t *testing.T) {
	before := runtime.NumGoroutine()
	for name, data := range samples() {
		data = strings.Repeat(data, 1+400_000/len(data))
		for _, at := range []int{1, 3, 40} {
			ctx, cancel := context.WithCancel(context.Background())
			src := &canceling{r: strings.NewReader(data), at: at, cancel: cancel}
			_, err := preview.Preview(ctx, src, preview.Options{})
			if !errors.Is(err, context.Canceled) || src.after > 0 {
				t.Errorf("%s, canceled at read %d: %d reads came after it, and the error is %v", name, at, src.after, err)
			}
			cancel()
		}
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines run on", n-before)
	}
}

// TestChecksPrograms: a program that the caller refuses is not proposed, and what is proposed is asked about.
func TestChecksPrograms(t *testing.T) {
	for _, data := range []string{issues(rand.New(rand.NewPCG(1, 1))), "id,name\n" + strings.Repeat("1,x\n", 300)} {
		for _, fine := range []bool{true, false} {
			var asked []string
			res, err := preview.Preview(context.Background(), strings.NewReader(data), preview.Options{Chars: 10_000, Window: true, Check: func(program string) bool {
				asked = append(asked, program)
				return fine
			}})
			if err != nil {
				t.Fatal(err)
			}
			if shown := strings.Contains(res.Text, "\ntry: "); len(asked) != 1 || shown != fine || fine && !strings.Contains(res.Text, "'"+asked[0]+"'") {
				t.Errorf("asked about %q, got it %t, want %t\n%s", asked, shown, fine, res.Text)
			}
		}
	}
}

// corners are the corner cases, and the files in testdata that show what becomes of them.
var corners = map[string]string{
	"no data, white space":                              "empty white_space",
	"scalars and null alone":                            "scalar null",
	"invalid and truncated JSON":                        "broken_inside truncated cut",
	"NaN and Infinity":                                  "nan",
	"garbage behind a document":                         "trailing_garbage",
	"JSON Lines, concatenated, text sequences":          "json_lines concatenated sequence",
	"JSON Lines among text, broken lines":               "mixed",
	"byte order mark, UTF-16":                           "bom utf16 utf16_no_mark",
	"invalid UTF-8":                                     "invalid_utf8",
	"raw control characters":                            "raw_controls controls nul",
	"half a surrogate pair":                             "lone_surrogate",
	"keys that come twice":                              "duplicate_keys",
	"long strings":                                      "long_string",
	"an object of very many keys":                       "many_keys map small_map",
	"objects with disjoint keys":                        "disjoint_keys",
	"a very long array":                                 "huge_array",
	"deep nesting":                                      "deep deeper",
	"trees and chains":                                  "recursion recursion_key",
	"long and odd keys":                                 "long_key odd_keys",
	"numbers beyond float64":                            "numbers huge_number",
	"binary, compressed, images as base64":              "gzip nul base64 base64_field",
	"text before JSON, fences":                          "prefix fence fence_text",
	"XML, HTML, YAML, tables":                           "xml html yaml markdown_table",
	"single quotes, comments, commas too many":          "single_quotes comments trailing_comma",
	"JSON in strings":                                   "json_in_string json_in_string_some",
	"MCP results":                                       "mcp_content",
	"CSV: line feeds, ragged rows, no header":           "csv csv_quoted csv_ragged csv_no_header csv_open_quote csv_names csv_outlier csv_cut",
	"CSV: byte order mark, semicolons, tabs, columns":   "csv_bom_semicolon tsv csv_columns",
	"text with commas that is no CSV":                   "log_commas prose_commas",
	"logs: one line, CR, colours, traces":               "one_line cr_lines ansi_log stack_traces",
	"budgets of 0, 1, 20 and more than the data":        "chars_000 chars_001 chars_020 verbatim",
	"a log in a small budget: patterns come first":      "log_small",
	"ids are printed whole":                             "numbers",
	"a field of a log with few values lists them":       "log",
	"strings have patterns, long texts those of lines":  "patterns long_texts",
	"a number of values is not written as a repetition": "unions",
	"small data is shown whole, not its shape":          "window_small window_shape",
}

// TestCornersHaveFiles keeps the list of corner cases and the files together.
func TestCornersHaveFiles(t *testing.T) {
	for _, what := range slices.Sorted(maps.Keys(corners)) {
		for _, name := range strings.Fields(corners[what]) {
			if archive := readGolden(t, fmt.Sprintf("testdata/%s.txtar", name)); len(archive.Files) < 2 {
				t.Errorf("%s: %s has no want", what, name)
			}
		}
	}
}
