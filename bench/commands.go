package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/stages"
)

// concurrency is how many items of a command run at the same time.
const concurrency = 8

// eachCommand is a for_each of a command over lines, in the real sandbox.
func (b *bench) eachCommand(ctx context.Context, s *stack, name string, args ...string) (func(context.Context) error, error) {
	commands, err := b.newSandbox(ctx)
	if err != nil {
		return nil, err
	}
	s.push(commands.Close)
	stage := command(name, args...)
	stage["for_each"], stage["concurrency"] = true, concurrency
	p, err := compile(ctx, []step{stage}, nil, commands)
	if err != nil {
		return nil, err
	}
	items := numbers(b.sizes.lines)
	return func(ctx context.Context) error {
		var out strings.Builder
		if _, err := p.Run(ctx, strings.NewReader(items), &out, stages.RunOptions{}); err != nil {
			return err
		}
		if got := strings.Count(out.String(), "\n"); got != b.sizes.lines {
			return fmt.Errorf("%d lines came out, want %d", got, b.sizes.lines)
		}
		return nil
	}, nil
}

// eachProcess compares for_each of a command with starting the program itself as often.
func eachProcess(name string, args ...string) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		s := new(stack)
		ours, err := b.eachCommand(ctx, s, name, args...)
		if err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		base := func(ctx context.Context) error {
			g, ctx := errgroup.WithContext(ctx)
			g.SetLimit(concurrency)
			for line := range strings.Lines(numbers(b.sizes.lines)) {
				g.Go(func() error {
					cmd := exec.CommandContext(ctx, name, args...)
					cmd.Stdin, cmd.Stdout = strings.NewReader(line), io.Discard
					return cmd.Run()
				})
			}
			return g.Wait()
		}
		return pair{ours: timed(ours), base: timed(base), close: s.close}, nil
	}
}

// eachCall compares for_each of a command over many lines with one call of a tool over HTTP.
func eachCall(name string, args ...string) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		s := new(stack)
		ours, err := b.eachCommand(ctx, s, name, args...)
		if err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		url, err := b.listenUpstream(s, sessionEra)
		if err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		session, err := connect(ctx, s, streamable(url), sessionEra)
		if err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		call := caller(session, hello, tool("hello"))
		base := func(ctx context.Context) ([]quantity, error) {
			q, err := repeat(ctx, b.sizes.calls, call)
			if err == nil {
				q[0].figure = "time" // of one call
			}
			return q, err
		}
		return pair{ours: timed(ours), base: base, close: s.close}, nil
	}
}

// timed measures work that is done once.
func timed(work func(context.Context) error) side {
	return func(ctx context.Context) ([]quantity, error) {
		m := startMeter()
		if err := work(ctx); err != nil {
			return nil, err
		}
		u := m.stop()
		return []quantity{{"time", float64(u.elapsed), duration}, {"CPU", float64(u.cpu), duration}}, nil
	}
}
