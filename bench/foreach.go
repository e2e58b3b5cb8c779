package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/stages"
)

const promise = "2 x concurrency + 8, the most that is allowed"

// waiting is the for_each stage whose tool takes its time.
func waiting(concurrency int) step {
	return step{"type": "tool", "server": serverName, "name": "wait", "for_each": true, "concurrency": concurrency}
}

// eachOver compares a for_each through a gateway, with a jq that makes its items, with a client that makes the same calls,
// as many at once.
func eachOver(w way, n, concurrency int) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		s := new(stack)
		e, err := w(ctx, b, s)
		if err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		want := "[" + strings.ReplaceAll(strings.TrimSpace(numbers(n)), "\n", ",\n") + "]"
		items := command("jq", "-n", "-c", fmt.Sprintf("range(%d) | {id: .}", n))
		ours := func(ctx context.Context) error {
			list := []step{items, waiting(concurrency)}
			return caller(e.through, want, &mcp.CallToolParams{Name: "execute_pipeline", Arguments: map[string]any{"pipeline": list}})(ctx)
		}
		base := func(ctx context.Context) error {
			g, ctx := errgroup.WithContext(ctx)
			g.SetLimit(concurrency)
			for i := range n {
				g.Go(func() error {
					one := &mcp.CallToolParams{Name: "wait", Arguments: map[string]any{"id": i}}
					return caller(e.server, fmt.Sprintf(`{"id":%d}`, i), one)(ctx)
				})
			}
			return g.Wait()
		}
		const times = 5
		return pair{ours: repeated(times, ours), base: repeated(times, base), close: s.close}, nil
	}
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
