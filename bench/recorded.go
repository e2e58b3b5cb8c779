package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// recorded compares a stream whose output is kept, for later pipelines to begin from, with the same stream without that.
// Both run in this process, with the real sandbox.
func recorded(steps ...step) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		s := new(stack)
		commands, err := b.newSandbox(ctx)
		if err != nil {
			return pair{}, err
		}
		s.push(commands.Close)
		dir, err := os.MkdirTemp("", "bench-runs")
		if err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		s.push(func() error { return os.RemoveAll(dir) })
		store := runs.New(runs.Options{Dir: dir})
		s.push(store.Close)
		deps := stages.Deps{Commands: commands, Schemas: schemas.Stages()}
		kept := deps
		kept.Runs = store.Of("bench")
		data := newFeed(b.sizes.bulk, false)
		return pair{
			ours: func(ctx context.Context) ([]quantity, error) {
				q, run, err := streamed(ctx, steps, kept, data)
				if err == nil {
					err = keptWhole(ctx, kept.Runs, run, data.size)
				}
				return q, err
			},
			base: func(ctx context.Context) ([]quantity, error) {
				q, _, err := streamed(ctx, steps, deps, data)
				return q, err
			},
			close: s.close,
		}, nil
	}
}

// streamed runs a pipeline on data and measures it.
func streamed(ctx context.Context, steps []step, d stages.Deps, data feed) ([]quantity, string, error) {
	p, err := compileWith(ctx, steps, d)
	if err != nil {
		return nil, "", err
	}
	out := &counter{r: data.reader()}
	m := startMeter()
	report, err := p.Run(ctx, out, io.Discard, stages.RunOptions{})
	if err != nil {
		return nil, "", err
	}
	took := m.stop()
	mb := float64(out.n) / 1e6
	return []quantity{
		{"time", float64(took.elapsed), duration},
		{"MB/s", mb / (float64(took.elapsed) / float64(time.Second)), rate},
	}, report.Run, nil
}

// keptWhole fails where the output of a run is not there: nothing would have been measured.
func keptWhole(ctx context.Context, kept stages.Runs, run string, size int64) error {
	data, release, err := stages.OpenOutput(ctx, kept, run, 0)
	if err != nil {
		return err
	}
	defer release()
	if data.Size() != size {
		return fmt.Errorf("%d bytes were kept of %d", data.Size(), size)
	}
	return nil
}
