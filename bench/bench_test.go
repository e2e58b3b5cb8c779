package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// TestRows runs every row with little to do, so that all of them keep working. The goals are not judged.
func TestRows(t *testing.T) {
	tiny := sizes{
		calls: 5, chains: 2, latency: 20 * time.Millisecond, items: 128, many: 500, lines: 10, quick: 100, big: 1 << 20, bulk: 1 << 16, piped: 1 << 20, shape: 1 << 20,
	}
	file := filepath.Join(t.TempDir(), "results.md")
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-runs", "1", "-o", file}, &out, tiny); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows() {
		if strings.Count(string(text), "| "+r.name) < 2 {
			t.Errorf("row %q is not in both tables:\n%s", r.name, text)
		}
	}
}

var update = flag.Bool("update", false, "rewrite what RESULTS.md says of the quality of previews")

// TestQualityIsCurrent compares what the results say of previews with previews as they are now.
func TestQualityIsCurrent(t *testing.T) {
	want, err := qualityText()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, got, _ := strings.Cut(string(data), qualityTitle)
	if qualityTitle+got == want {
		return
	}
	if !*update {
		t.Fatalf("previews tell more or less than RESULTS.md says; -update accepts it (-results +now)\n%s", cmp.Diff(qualityTitle+got, want))
	}
	if err := os.WriteFile("RESULTS.md", []byte(rows+want), 0o644); err != nil {
		t.Fatal(err)
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

// Every goal must name a figure that its row has, or it would be met by silence.
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
