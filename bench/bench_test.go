package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// TestMain makes the test binary the upstream server where a row starts it as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == upstreamArg {
		serveUpstream(context.Background())
		return
	}
	if len(os.Args) > 1 && os.Args[1] == previewArg {
		if err := previewAlone(context.Background(), os.Args[2:], os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

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

func TestGoals(t *testing.T) {
	ratio := figure{name: "p50", unit: duration, ours: []float64{2, 9, 4}, base: []float64{1, 1, 1}} // 2x, 9x, 4x
	value := figure{name: "memory", unit: size, ours: []float64{10, 30, 20}}
	for _, c := range []struct {
		goal goal
		of   figure
		want bool
	}{
		{most("p50", 4), ratio, true},
		{most("p50", 3.9), ratio, false},
		{least("p50", 4), ratio, true},
		{least("p50", 4.1), ratio, false},
		{never("p50", 9), ratio, true},
		{never("p50", 8), ratio, false},
		{most("memory", 20), value, true},
		{never("memory", 20), value, false},
	} {
		if got := c.goal.met(c.of); got != c.want {
			t.Errorf("%s of %s: got %v, want %v", c.goal.text(c.of), c.of.name, got, c.want)
		}
	}
}

// Every goal must name a figure that its row has, or a missing figure would meet it.
func TestGoalsAreJudged(t *testing.T) {
	data, err := os.ReadFile("RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	goals := 0
	for _, r := range rows() {
		goals += len(r.goals)
	}
	if got := strings.Count(string(data), "| yes |") + strings.Count(string(data), "| no  |"); got != goals {
		t.Errorf("the results judge %d goals, want %d; run go run ./bench", got, goals)
	}
}

// TestMerge: rows that were measured alone take the place of older ones, in the order of the rows. The text about
// previews stays.
func TestMerge(t *testing.T) {
	list := rows()
	measured := func(r row, value float64) outcome {
		return outcome{row: r, runs: 1, figures: []figure{{"p50", duration, []float64{value}, []float64{1000}}, {"CPU", duration, []float64{7}, nil}}}
	}
	gone := list[0]
	gone.name = "a row that is gone"
	old := report([]outcome{measured(gone, 1), measured(list[0], 2000), measured(list[2], 4000)}, options{runs: 1, big: 1}) + "\n## What follows\n"
	got := merge(old, []outcome{measured(list[2], 9000), measured(list[1], 3000)}, options{runs: 1, big: 1, only: "x", shared: true})
	head, figures, rest := readTable(got)
	_, compared, tail := readTable(rest)
	var ratios []string
	for i, s := range figures {
		ratios = append(ratios, s.name+" "+s.lines[0][4]+" "+compared[i].name)
	}
	want := []string{
		list[0].name + " 2.00x " + list[0].name, list[1].name + " 3.00x " + list[1].name, list[2].name + " 9.00x " + list[2].name,
	}
	if diff := cmp.Diff(want, ratios); diff != "" {
		t.Errorf("the rows (-want +got)\n%s", diff)
	}
	if !strings.Contains(head, "on a shared machine: "+list[2].name+"; "+list[1].name+".") || tail != "\n## What follows\n" || len(figures[0].lines) != 2 {
		t.Errorf("got %q and %q around the tables, and %d lines of the first row", head, tail, len(figures[0].lines))
	}
}
