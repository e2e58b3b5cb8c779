package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"time"
)

// A quantity is what one run of one side of a comparison says about a figure.
type quantity struct {
	figure string
	value  float64
	unit   unit
}

// A side of a comparison does its work once and tells what it took.
type side func(ctx context.Context) ([]quantity, error)

// A pair is the two sides of a comparison, ready to run. Close, which may be nil, ends what both have started.
type pair struct {
	ours, base side
	close      func() error
}

// A figure is a quantity over all runs. Base is empty where the baseline has no such figure.
type figure struct {
	name       string
	unit       unit
	ours, base []float64
}

// ratios returns ours over base, run by run: what disturbs a run disturbs both of its sides.
func (f figure) ratios() []float64 {
	var list []float64
	for i := range f.base {
		list = append(list, f.ours[i]/f.base[i])
	}
	return list
}

// An outcome is a row with what was measured.
type outcome struct {
	row     row
	figures []figure
	runs    int
	skipped string // why it was not measured
	err     error
}

// measureRow measures one row.
func (b *bench) measureRow(ctx context.Context, r row, runs int) outcome {
	o := outcome{row: r, runs: runs}
	if r.long {
		o.runs = (runs + 4) / 5
	}
	for _, program := range r.needs {
		if _, err := exec.LookPath(program); err != nil {
			o.skipped = program + " is not installed"
			return o
		}
	}
	if r.lacks != nil {
		if o.skipped = r.lacks(ctx); o.skipped != "" {
			return o
		}
	}
	p, err := r.open(ctx, b)
	if err != nil {
		o.err = err
		return o
	}
	o.figures, o.err = p.measure(ctx, o.runs)
	if p.close != nil {
		o.err = errors.Join(o.err, p.close())
	}
	return o
}

// measure runs both sides in turn, and each of them first in every other run.
func (p pair) measure(ctx context.Context, runs int) ([]figure, error) {
	var figures []figure
	for i := range runs {
		var got [2][]quantity
		for j := range 2 {
			k := (i + j) % 2
			runtime.GC() // what the other side has left behind is not this side's work
			var err error
			if got[k], err = []side{p.ours, p.base}[k](ctx); err != nil {
				return nil, fmt.Errorf("run %d: %w", i+1, err)
			}
		}
		figures = appendRun(figures, got[0], got[1])
	}
	return figures, nil
}

// appendRun adds what one run says.
func appendRun(figures []figure, ours, base []quantity) []figure {
	for _, q := range ours {
		at := slices.IndexFunc(figures, func(f figure) bool { return f.name == q.figure })
		if at < 0 {
			at, figures = len(figures), append(figures, figure{name: q.figure, unit: q.unit})
		}
		f := &figures[at]
		f.ours = append(f.ours, q.value)
		for _, other := range base {
			if other.figure == q.figure {
				f.base = append(f.base, other.value)
			}
		}
	}
	return figures
}

// met judges a figure.
func (g goal) met(f figure) bool {
	values := f.ratios()
	if len(f.base) == 0 {
		values = f.ours
	}
	value := median(values)
	if g.worst {
		value = slices.Max(values)
	}
	if g.atLeast {
		return value >= g.limit
	}
	return value <= g.limit
}

func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// repeated is a side that makes n calls.
func repeated(n int, call func(context.Context) error) side {
	return func(ctx context.Context) ([]quantity, error) { return repeat(ctx, n, call) }
}

// repeat makes n calls one after another, after a few that do not count.
func repeat(ctx context.Context, n int, call func(context.Context) error) ([]quantity, error) {
	for range n/10 + 1 {
		if err := call(ctx); err != nil {
			return nil, err
		}
	}
	times := make([]float64, n)
	m := startMeter()
	for i := range times {
		start := time.Now()
		if err := call(ctx); err != nil {
			return nil, err
		}
		times[i] = float64(time.Since(start))
	}
	u := m.stop()
	return []quantity{{"p50", median(times), duration}, {"CPU", float64(u.cpu) / float64(n), duration}}, nil
}
