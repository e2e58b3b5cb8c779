package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/upstream"
)

const (
	jailedRSS = "peak RSS of the largest process"
	perRun    = "KB of a run that waits"
)

// crowdLatency is what the tool takes that all runs of a crowd wait for, for each of them: time for all to begin. A
// machine that has other things to do gets up to mostLatency in all.
const (
	crowdLatency = 3 * time.Millisecond
	mostLatency  = time.Minute
)

// atOnceRuns has so many pipelines wait for a tool at a time, with a gateway, its client and a server in this process.
func atOnceRuns(n int) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		n := min(n, b.sizes.items*2)
		latency := time.Duration(n) * crowdLatency
		base := func(context.Context) ([]quantity, error) {
			return []quantity{{"time", float64(latency), duration}}, nil
		}
		ours := func(ctx context.Context) (q []quantity, err error) {
			for ; ; latency *= 2 {
				if q, err = crowdOf(ctx, n, latency); !errors.Is(err, errApart) || 2*latency > mostLatency {
					return q, err
				}
			}
		}
		return pair{base: base, ours: ours}, nil
	}
}

// errApart is that calls have ended before all had begun, so that nothing can be said of a crowd.
var errApart = errors.New("too few calls waited at once")

func crowdOf(ctx context.Context, n int, latency time.Duration) (q []quantity, err error) {
	s := new(stack)
	defer func() { err = errors.Join(err, s.close()) }()
	u := newUpstream(latency)
	pool := upstream.NewPool(upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: serverName, Dial: u.Dial}}}, Concurrency: n})
	s.push(pool.Close)
	g := gateway.New(gateway.Options{Upstream: pool, Runs: n, CallerRuns: n})
	s.push(func() error { return g.Close(ctx) })
	session, err := inMemory(ctx, s, g.Server())
	if err != nil {
		return nil, err
	}
	call := func(id int) error {
		params := &mcp.CallToolParams{Name: "execute_pipeline", Arguments: map[string]any{"pipeline": []step{
			{"type": "tool", "server": serverName, "name": "wait", "args": map[string]any{"id": id}},
		}}}
		return caller(session, fmt.Sprintf(`{"id":%d}`, id), params)(ctx)
	}
	if err := call(0); err != nil { // which connects
		return nil, err
	}
	before := needed()
	m := startMeter()
	var all errgroup.Group
	for id := range n {
		all.Go(func() error { return call(id) })
	}
	var waiting int64
	for end := time.Now().Add(latency); u.Running() < n && time.Now().Before(end); {
		time.Sleep(latency / 100)
	}
	waiting = needed()
	if err := all.Wait(); err != nil {
		return nil, err
	}
	took := m.stop()
	if u.Peak() < n {
		return nil, fmt.Errorf("%w: %d, want %d", errApart, u.Peak(), n)
	}
	return []quantity{
		{"time", float64(took.elapsed), duration},
		{"CPU of one", float64(took.cpu) / float64(n), duration},
		{perRun, float64(waiting-before) / 1e3 / float64(n), count},
	}, nil
}

// needed is the memory that this process needs.
func needed() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc + s.StackInuse)
}

// oneArray feeds one JSON array to jq, which is to read it by element.
func oneArray(filter string) opener {
	return func(_ context.Context, b *bench) (pair, error) {
		data := newFeed(b.sizes.big, true)
		steps := []step{command("jq", "-c", filter), command("tail", "-n", "1")}
		ours := func(ctx context.Context) ([]quantity, error) {
			cmd := exec.CommandContext(ctx, b.mcsh, "run", "--sandbox", "local", "--no-builtin", "--input", "-", "--timeout", "1h", pipelineOf(steps...))
			ended := make(chan struct{})
			largest := watchBelow(ended)
			var last string
			q, err := through(cmd, data, &last)
			close(ended)
			return append(q, quantity{jailedRSS, float64(<-largest), size}), err
		}
		base := func(context.Context) ([]quantity, error) {
			return []quantity{{jailedRSS, arrayMemory, size}}, nil
		}
		return pair{ours: ours, base: base}, nil
	}
}

// arrayMemory is what jq may take for an array of any size.
const arrayMemory = 64e6

// watchBelow looks for the process with the most memory among all below this one, until ended is closed.
func watchBelow(ended <-chan struct{}) <-chan int64 {
	most := make(chan int64, 1)
	go func() {
		highest := int64(0)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			for _, p := range processesBelow() {
				if now, ok := peakRSS(p.pid); ok {
					highest = max(highest, now)
				}
			}
			select {
			case <-ended:
				most <- highest
				return
			case <-tick.C:
			}
		}
	}()
	return most
}
