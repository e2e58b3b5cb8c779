package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/stages"
)

const (
	ideal = "the ideal: an item begins when one before it ends, each takes as long as the tool, and nothing else takes time"
	peers = "goroutines that make the same calls over the same session, as many at once"
)

// paceRows compare for_each over a tool that takes its time with the best that is possible: with a tool in this process,
// so that what is lost is the engine's, and with a server.
func paceRows() []row {
	var list []row
	for _, n := range []int{1, 8, 32, 64} {
		list = append(
			list,
			row{
				name: fmt.Sprintf("pace of for_each, %d at once", n), baseline: ideal, open: pace(n, uniform),
				goals: []goal{least("items/s", 0.95)},
			},
			row{
				name: fmt.Sprintf("pace of for_each, %d at once, exponential", n), baseline: ideal, open: pace(n, exponential),
				goals: []goal{least("items/s", 0.9)},
			},
		)
	}
	return append(
		list,
		row{
			name: "pace of for_each over a server, 32 at once", baseline: peers, reference: "0.03x", open: paceOver(32),
			goals: []goal{least("items/s", 0.95)},
		},
		row{
			name: "pace of for_each over a server, 64 at once", baseline: peers, open: paceOver(64),
			goals: []goal{least("items/s", 0.95)},
		},
	)
}

// uniform and exponential are how long the calls of a tool take, in turn, with the same mean.
func uniform(mean time.Duration, n int) []time.Duration {
	list := make([]time.Duration, n)
	for i := range list {
		list[i] = mean
	}
	return list
}

func exponential(mean time.Duration, n int) []time.Duration {
	random := rand.New(rand.NewPCG(1, 2))
	list := make([]time.Duration, n)
	for i := range list {
		list[i] = time.Duration(random.ExpFloat64() * float64(mean))
	}
	return list
}

// shortest is how long calls take at best, so many at once, that begin in their order.
func shortest(calls []time.Duration, concurrency int) time.Duration {
	free := make([]time.Duration, concurrency) // when each place is
	end := time.Duration(0)
	for _, d := range calls {
		first := 0
		for i := range free {
			if free[i] < free[first] {
				first = i
			}
		}
		free[first] += d
		end = max(end, free[first])
	}
	return end
}

// A timer is a source of one tool that takes its time.
type timer []time.Duration

// Tool implements [stages.Tools].
func (timer) Tool(ctx context.Context, server, name string) (*stages.Tool, error) {
	return instant{}.Tool(ctx, server, name)
}

// CallTool implements [stages.Tools].
func (t timer) CallTool(ctx context.Context, c stages.Call) (stages.Result, error) {
	var args struct{ ID int }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return stages.Result{}, err
	}
	time.Sleep(t[args.ID])
	return instant{}.CallTool(ctx, c)
}

// pace compares for_each over a slow tool with the best that is possible.
func pace(concurrency int, latency func(mean time.Duration, n int) []time.Duration) opener {
	return func(_ context.Context, b *bench) (pair, error) {
		n := b.paced(concurrency)
		calls := timer(latency(b.sizes.latency, n))
		best := float64(n) / shortest(calls, concurrency).Seconds()
		return pair{
			ours: func(ctx context.Context) ([]quantity, error) { return runPace(ctx, calls, n, concurrency) },
			base: func(context.Context) ([]quantity, error) { return []quantity{{"items/s", best, rate}}, nil },
		}, nil
	}
}

// paced is how many items a row has.
func (b *bench) paced(concurrency int) int {
	if concurrency == 1 {
		return b.sizes.items / 10
	}
	return b.sizes.items
}

// runPace runs n items over a tool. It checks that the results are in order and that as many calls ran at once as asked.
func runPace(ctx context.Context, tools stages.Tools, n, concurrency int) ([]quantity, error) {
	calls := &crowd{Tools: tools}
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
	return paceOf(took, n), nil
}

func paceOf(took usage, n int) []quantity {
	return []quantity{
		{"items/s", float64(n) / took.elapsed.Seconds(), rate},
		{"CPU/item", float64(took.cpu) / float64(n), duration},
	}
}

// paceOver compares for_each over a server with goroutines that do no more than call.
func paceOver(concurrency int) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		u := newUpstream(b.sizes.latency)
		pool := newPool(u)
		n := b.paced(concurrency)
		if _, err := callAll(ctx, pool, 1, 1); err != nil { // which starts the session
			return pair{}, errors.Join(err, pool.Close())
		}
		return pair{
			ours:  func(ctx context.Context) ([]quantity, error) { return runPace(ctx, pool, n, concurrency) },
			base:  func(ctx context.Context) ([]quantity, error) { return callAll(ctx, pool, n, concurrency) },
			close: pool.Close,
		}, nil
	}
}

// callAll makes n calls.
func callAll(ctx context.Context, tools stages.Tools, n, concurrency int) ([]quantity, error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(concurrency)
	m := startMeter()
	for i := range n {
		g.Go(func() error {
			_, err := tools.CallTool(ctx, stages.Call{Server: serverName, Name: "wait", Args: fmt.Appendf(nil, `{"id":%d}`, i)})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return paceOf(m.stop(), n), nil
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
