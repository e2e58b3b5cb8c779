package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/mcsh-dev/mcsh/stages"
)

// instant is a source of one tool that answers at once, with its arguments.
type instant struct{}

// Tool implements [stages.Tools].
func (instant) Tool(_ context.Context, server, name string) (*stages.Tool, error) {
	return &stages.Tool{Server: server, Name: name, Annotated: true, ReadOnly: true, Input: stages.Input{Properties: []string{"id"}}}, nil
}

// CallTool implements [stages.Tools].
func (instant) CallTool(ctx context.Context, c stages.Call) (stages.Result, error) {
	if c.MaySend != nil && !c.MaySend() {
		return stages.Result{}, ctx.Err()
	}
	return stages.Result{Data: append(bytes.Clone(c.Args), '\n')}, nil
}

// engine compares what the engine itself takes for each item, with a number of stages within for_each, with a loop.
func engine(depth int) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		var inner []step
		for range depth {
			inner = append(inner, step{"type": "tool", "server": serverName, "name": "echo"})
		}
		p, err := compile(ctx, []step{{"type": "for_each", "stages": inner, "concurrency": concurrency, "collect": "lines"}}, instant{}, nil)
		if err != nil {
			return pair{}, err
		}
		items := numbers(b.sizes.quick)
		ours := func(ctx context.Context) error {
			_, err := p.Run(ctx, strings.NewReader(items), io.Discard, stages.RunOptions{})
			return err
		}
		base := func(ctx context.Context) error { return loop(ctx, strings.NewReader(items), depth) }
		return pair{ours: perItem(b.sizes.quick, ours), base: perItem(b.sizes.quick, base)}, nil
	}
}

// loop is what one would write by hand.
func loop(ctx context.Context, in io.Reader, depth int) error {
	lines := make(chan []byte)
	errs := make([]error, concurrency)
	var wg sync.WaitGroup
	for i := range concurrency {
		wg.Go(func() {
			for line := range lines {
				for range depth {
					res, err := instant{}.CallTool(ctx, stages.Call{Server: serverName, Name: "echo", Args: line})
					errs[i] = errors.Join(errs[i], err)
					line = bytes.TrimSpace(res.Data)
				}
			}
		})
	}
	scan := bufio.NewScanner(in)
	for scan.Scan() {
		lines <- bytes.Clone(scan.Bytes())
	}
	close(lines)
	wg.Wait()
	return errors.Join(append(errs, scan.Err())...)
}

// perItem measures work on many items.
func perItem(n int, work func(context.Context) error) side {
	return func(ctx context.Context) ([]quantity, error) {
		m := startMeter()
		if err := work(ctx); err != nil {
			return nil, err
		}
		u := m.stop()
		each := float64(n)
		return []quantity{
			{"time/item", float64(u.elapsed) / each, duration},
			{"CPU/item", float64(u.cpu) / each, duration},
			{"allocations/item", float64(u.mallocs) / each, count},
		}, nil
	}
}
