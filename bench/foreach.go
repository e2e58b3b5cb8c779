package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/mcsh-dev/mcsh/stages"
)

const (
	ideal   = "the ideal: every batch takes as long as the tool, and nothing else takes time"
	promise = "2 x concurrency + 8, the most that is allowed"
)

// waiting is the for_each stage whose tool takes its time.
func waiting(concurrency int) step {
	return step{"type": "tool", "server": serverName, "name": "wait", "for_each": true, "concurrency": concurrency}
}

// pace compares for_each over a slow tool with the best that is possible. That the results are in order and that as
// many calls ran at once as asked is checked.
func pace(concurrency int) opener {
	return func(_ context.Context, b *bench) (pair, error) {
		n := b.sizes.items
		if concurrency == 1 {
			n /= 10
		}
		batches := (n + concurrency - 1) / concurrency
		best := float64(n) / (float64(batches) * b.sizes.latency.Seconds())
		return pair{
			ours: func(ctx context.Context) ([]quantity, error) { return b.runPace(ctx, n, concurrency) },
			base: func(context.Context) ([]quantity, error) { return []quantity{{"items/s", best, rate}}, nil },
		}, nil
	}
}

func (b *bench) runPace(ctx context.Context, n, concurrency int) (q []quantity, err error) {
	u := newUpstream(b.sizes.latency)
	pool := newPool(u)
	defer func() { err = errors.Join(err, pool.Close()) }()
	calls := &crowd{Tools: pool}
	p, err := compile(ctx, []step{waiting(concurrency)}, calls, nil)
	if err != nil {
		return nil, err
	}
	items := numbers(n)
	var out bytes.Buffer
	m := startMeter()
	if _, err := p.Run(ctx, strings.NewReader(items), &out, stages.RunOptions{}); err != nil {
		return nil, err
	}
	took := m.stop()
	want := "[" + strings.ReplaceAll(strings.TrimSpace(items), "\n", ",\n") + "]\n"
	if out.String() != want {
		return nil, fmt.Errorf("the results are not those of the items in their order: %.200q", out.String())
	}
	if got := calls.peak; got != min(n, concurrency) {
		return nil, fmt.Errorf("%d calls ran at once, want %d", got, concurrency)
	}
	return []quantity{
		{"items/s", float64(n) / took.elapsed.Seconds(), rate},
		{"CPU/item", float64(took.cpu) / float64(n), duration},
	}, nil
}

// A crowd counts the calls that the engine has under way.
type crowd struct {
	stages.Tools

	mu            sync.Mutex
	running, peak int // guarded by mu
}

// CallTool implements [stages.Tools].
func (c *crowd) CallTool(ctx context.Context, call stages.Call) (stages.Result, error) {
	c.count(1)
	defer c.count(-1)
	return c.Tools.CallTool(ctx, call)
}

func (c *crowd) count(change int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running += change
	c.peak = max(c.peak, c.running)
}

// earlyStop counts the calls that are made when only the first three results are wanted.
func earlyStop(concurrency int) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		commands, err := b.newSandbox(ctx)
		if err != nil {
			return pair{}, err
		}
		return pair{
			ours: func(ctx context.Context) ([]quantity, error) { return b.runEarlyStop(ctx, commands, concurrency) },
			base: func(context.Context) ([]quantity, error) {
				return []quantity{{"calls", float64(2*concurrency + 8), count}}, nil
			},
			close: commands.Close,
		}, nil
	}
}

func (b *bench) runEarlyStop(ctx context.Context, commands stages.Commands, concurrency int) (q []quantity, err error) {
	u := newUpstream(b.sizes.latency)
	pool := newPool(u)
	defer func() { err = errors.Join(err, pool.Close()) }()
	p, err := compile(ctx, []step{waiting(concurrency), command("head", "-n", "3")}, pool, commands)
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	m := startMeter()
	if _, err := p.Run(ctx, strings.NewReader(numbers(b.sizes.many)), &out, stages.RunOptions{}); err != nil {
		return nil, err
	}
	took := m.stop()
	if got, want := out.String(), "[{\"id\":0},\n{\"id\":1},\n{\"id\":2},\n"; got != want {
		return nil, fmt.Errorf("got %.200q, want %q", got, want)
	}
	return []quantity{{"calls", float64(u.Calls("wait")), count}, {"time", float64(took.elapsed), duration}}, nil
}
