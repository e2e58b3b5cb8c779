package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/upstream"
)

// ways are how a gateway and a server are reached.
var ways = []struct {
	name string
	way  way
}{{"stdio", overStdio}, {"HTTP", overHTTP(sessionEra)}, {"stateless HTTP", overHTTP(statelessEra)}}

// upstreamRows are about calls of servers.
func upstreamRows() []row {
	var list []row
	for _, w := range ways {
		over := ", " + w.name
		list = append(list,
			row{
				name: "64 calls at once" + over, baseline: "the same calls by one go-sdk client, as many at once", open: atOnceOver(w.way),
			},
			row{
				name: "connecting for every call" + over, baseline: "a go-sdk client that connects to the server, calls and closes, for every call",
				open: connecting(w.way), goals: []goal{most("p50", 1)},
			},
			row{name: "0.9 MB, whole" + over, baseline: direct, open: bulkOver(w.way, 900_000, false)},
			row{name: "1 MB, its last line" + over, baseline: direct, open: bulkOver(w.way, 1<<20, true)},
			row{name: "50 MB, its last line" + over, baseline: direct, long: true, open: bulkOver(w.way, 50<<20, true), goals: []goal{most("p50", 1)}},
		)
	}
	return append(list, row{
		name: "tools of 20 servers", baseline: "connecting to the slowest of them alone and listing its tools", open: manyServers,
		goals: []goal{most("time", 1.5)},
	})
}

// atOnceOver counts calls that are in flight side by side.
func atOnceOver(w way) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		s := new(stack)
		e, err := w(ctx, b, s)
		if err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		each := max(b.sizes.calls/mostCallers, 1)
		side := func(session *mcp.ClientSession, params func() *mcp.CallToolParams) side {
			return pacing("calls", mostCallers, each, func(ctx context.Context, _ int) error {
				return caller(session, hello, params())(ctx) // the SDK writes into the parameters
			})
		}
		ours := side(e.through, func() *mcp.CallToolParams { return piped("hello") })
		return pair{ours: ours, base: side(e.server, func() *mcp.CallToolParams { return tool("hello") }), close: s.close}, nil
	}
}

// connecting compares a call through the gateway, which keeps its session with the server, with what a client does
// that keeps none.
func connecting(w way) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		s := new(stack)
		e, err := w(ctx, b, s)
		if err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		base := func(ctx context.Context) error {
			inner := new(stack)
			server, err := e.again(ctx, inner)
			if err == nil {
				err = caller(server, hello, tool("hello"))(ctx)
			}
			return errors.Join(err, inner.close())
		}
		return pair{
			ours:  repeated(b.sizes.chains, caller(e.through, hello, piped("hello"))),
			base:  repeated(b.sizes.chains, base),
			close: s.close,
		}, nil
	}
}

// bulkOver compares calls with a large result: all of it, or its last line.
func bulkOver(w way, size int, last bool) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		s := new(stack)
		e, err := w(ctx, b, s)
		if err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		size := min(size, int(b.sizes.bulk))
		args := map[string]any{"bytes": size}
		ours := &mcp.CallToolParams{Name: "execute_pipeline", Arguments: map[string]any{
			"pipeline": []step{{"type": "tool", "server": serverName, "name": "bulk", "args": args}}, "max_output": schemas.MaxOutput,
		}}
		if last {
			ours.Arguments = map[string]any{"pipeline": []step{
				{"type": "tool", "server": serverName, "name": "bulk", "args": args}, command("tail", "-n", "1"),
			}}
		}
		times := max(b.sizes.chains*(1<<20)/(4*size), 1)
		return pair{
			ours:  repeated(times, caller(e.through, "", ours)),
			base:  repeated(times, caller(e.server, "", &mcp.CallToolParams{Name: "bulk", Arguments: args})),
			close: s.close,
		}, nil
	}
}

// firstLine compares a call of which only the first line is wanted with one whose result is received whole.
func firstLine(size int) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		s := new(stack)
		e, err := overHTTP(sessionEra)(ctx, b, s)
		if err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		args := map[string]any{"bytes": min(size, int(b.sizes.bulk))}
		ours := &mcp.CallToolParams{Name: "execute_pipeline", Arguments: map[string]any{"pipeline": []step{
			{"type": "tool", "server": serverName, "name": "bulk", "args": args}, command("head", "-n", "1"),
		}}}
		return pair{
			ours:  withPeak(e.gateway, repeated(3, caller(e.through, "", ours))),
			base:  repeated(3, caller(e.server, "", &mcp.CallToolParams{Name: "bulk", Arguments: args})),
			close: s.close,
		}, nil
	}
}

// withPeak adds the most memory that a process has had so far.
func withPeak(pid int, measured side) side {
	return func(ctx context.Context) ([]quantity, error) {
		q, err := measured(ctx)
		if peak, known := peakRSS(pid); known {
			q = append(q, quantity{rss, float64(peak), size})
		}
		return q, err
	}
}

// manyServers compares listing the tools of twenty servers that take their time, of which one is dead, with what the
// slowest of them takes.
func manyServers(_ context.Context, b *bench) (pair, error) {
	late := func(d time.Duration) upstream.Server {
		u := newUpstream(0)
		return upstream.Server{Name: fmt.Sprintf("after %v", d), Dial: func(ctx context.Context) (mcp.Transport, error) {
			select {
			case <-time.After(d):
				return u.Dial(ctx)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}
	}
	list := upstream.Static{{Name: "dead", Dial: func(context.Context) (mcp.Transport, error) {
		return nil, errors.New("there is nobody")
	}}}
	for i := range 19 {
		list = append(list, late(b.sizes.latency*time.Duration(i+1)))
	}
	side := func(servers upstream.Static, healthy int) side {
		return timed(func(ctx context.Context) error {
			pool := upstream.NewPool(upstream.Options{Sources: []upstream.Source{servers}})
			err := pool.Load(ctx)
			n := 0
			for _, l := range pool.Catalog(ctx) {
				if len(l.Tools) > 0 {
					n++
				}
			}
			if n != healthy {
				err = errors.Join(err, fmt.Errorf("%d servers have listed their tools, want %d", n, healthy))
			}
			return errors.Join(err, pool.Close())
		})
	}
	return pair{ours: side(list, 19), base: side(list[19:], 1)}, nil
}
