//go:build !race

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// twins are rows that differ from another one in what is called, or over what. They are left out by day.
var twins = []string{
	"one call, HTTP with sessions",
	"one resource, HTTP with sessions",
	"one exposed tool, HTTP with sessions",
	"tool and a new jq, HTTP with sessions",
	"tool and a new jq, grep, sort, head, stateless HTTP",
	"for_each of 200 calls of 20 ms, HTTP with sessions",
	"head -n 3 behind for_each, 32 at once",
	"for_each of jq, by processes",
	"for_each of tr, by one call",
	"engine, three stages an item",
	"stream: jq, grep, tail",
	"stream: jq, grep, head",
	"preview of one JSON array",
	"files: search_files over 50,000, --reference",
	"files: an edit of 10 MB",
}

// namesOfRows are the rows that [TestRows] runs.
func namesOfRows() []string {
	var names []string
	for _, r := range rows() {
		if parttest.Night() || !slices.Contains(twins, r.name) {
			names = append(names, r.name)
		}
	}
	return names
}

// TestRows runs rows with little to do, so that all of them keep working. The goals are not judged.
func TestRows(t *testing.T) {
	names := namesOfRows()
	file := filepath.Join(t.TempDir(), "results.md")
	args := []string{"-runs", "1", "-o", file}
	if !parttest.Night() {
		quoted := make([]string, len(names))
		for i, name := range names {
			quoted[i] = regexp.QuoteMeta(name)
		}
		args = append(args, "-only", "^("+strings.Join(quoted, "|")+")$")
	}
	tiny := sizes{
		calls: 5, chains: 2, latency: 20 * time.Millisecond, items: 128, many: 500, lines: 10, quick: 100, big: 1 << 20, bulk: 1 << 16, piped: 1 << 20, shape: 1 << 20,
		files: 300, small: 100, edited: 1 << 16, entries: 2000,
	}
	var out bytes.Buffer
	if err := run(t.Context(), args, &out, tiny); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.Count(string(text), "| "+name) < 2 {
			t.Errorf("row %q is not in both tables:\n%s", name, text)
		}
	}
}
