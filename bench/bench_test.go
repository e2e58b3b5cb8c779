package main

import (
	"context"
	"os"
	"strings"
	"testing"

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
