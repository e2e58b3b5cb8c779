package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/store"
)

// s3Server is a real server of S3, as .ci/run parts builds it.
func s3Server() string { return filepath.Join(os.Getenv("MCSH_TEST_GO"), "versitygw") }

func lacksS3(context.Context) string {
	if _, err := os.Stat(s3Server()); err != nil {
		return "$MCSH_TEST_GO has no versitygw"
	}
	return ""
}

// replicaRows are about gateways that share a store.
func replicaRows() []row {
	return []row{
		{
			name: "a small run, kept in S3", baseline: "the same run, kept by the gateway alone", lacks: lacksS3,
			open: twoGateways((*replicas).run, (*replicas).runAlone), goals: []goal{most("p50", 1.2)},
		},
		{
			name: "from of a run of another gateway, over S3", baseline: "from of a run of the same gateway", lacks: lacksS3,
			open: twoGateways((*replicas).fromOther, (*replicas).fromOwn), goals: []goal{most("time of one", 20e6)},
		},
	}
}

// replicas are two gateways that share a bucket, and one that does not.
type replicas struct {
	first, second, alone *runs.Store
	deps                 stages.Deps
	ids                  chan string // of runs of the first gateway that the second does not know
	own                  string      // a run of the one that is alone
}

// twoGateways compares two functions of the same gateways.
func twoGateways(ours, base func(*replicas, context.Context) error) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		s := new(stack)
		r, err := newReplicas(ctx, s, b.sizes.calls)
		if err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		times := b.sizes.calls
		return pair{
			ours: func(ctx context.Context) ([]quantity, error) {
				if err := r.prepare(ctx, times+times/10+1); err != nil {
					return nil, err
				}
				q, err := repeat(ctx, times, func(ctx context.Context) error { return ours(r, ctx) })
				if err != nil {
					return nil, err
				}
				return append(q, quantity{"time of one", q[0].value, duration}), nil
			},
			base:  repeated(times, func(ctx context.Context) error { return base(r, ctx) }),
			close: s.close,
		}, nil
	}
}

func newReplicas(ctx context.Context, s *stack, times int) (*replicas, error) {
	dir, err := os.MkdirTemp("", "bench-replicas")
	if err != nil {
		return nil, err
	}
	s.push(func() error { return os.RemoveAll(dir) })
	shared, err := startS3(ctx, s, dir)
	if err != nil {
		return nil, err
	}
	open := func(shared store.Store) *runs.Store {
		kept := runs.New(runs.Options{Dir: dir, Shared: shared})
		s.push(kept.Close)
		return kept
	}
	pool := newPool(newUpstream(0))
	s.push(pool.Close)
	r := &replicas{
		first: open(shared), second: open(shared), alone: open(nil),
		deps: stages.Deps{Tools: pool, Caller: benchCaller, Schemas: schemas.Stages()},
		ids:  make(chan string, 2*times+2),
	}
	r.own, err = r.do(ctx, r.alone, step{"type": "tool", "server": serverName, "name": "rows"})
	return r, err
}

// startS3 starts a server of S3, and opens a sealed store there.
func startS3(ctx context.Context, s *stack, dir string) (store.Store, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := free.Addr().String()
	if err := errors.Join(free.Close(), os.MkdirAll(filepath.Join(dir, "data", "bucket"), 0o700)); err != nil {
		return nil, err
	}
	server := exec.Command(s3Server(), "--port", address, "--access", "key", "--secret", "secret", "--keep-alive", "--quiet", "posix", filepath.Join(dir, "data"))
	if err := server.Start(); err != nil {
		return nil, err
	}
	s.push(func() error {
		err := server.Process.Kill()
		_ = server.Wait() // it was killed
		return err
	})
	keyFile := filepath.Join(dir, "keys")
	if err := os.WriteFile(keyFile, []byte("k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"), 0o600); err != nil {
		return nil, err
	}
	keys, err := store.ReadKeys(keyFile)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		opened, err := store.OpenS3(ctx, store.S3Options{Endpoint: "http://" + address, Bucket: "bucket", AccessKey: "key", SecretKey: "secret"})
		if err == nil {
			return store.Seal(opened, keys), nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// prepare makes runs of the first gateway.
func (r *replicas) prepare(ctx context.Context, n int) error {
	for len(r.ids) < n {
		id, err := r.do(ctx, r.first, step{"type": "tool", "server": serverName, "name": "rows"})
		if err != nil {
			return err
		}
		r.ids <- id
	}
	return r.first.Sync(ctx)
}

// do runs a pipeline at a gateway, and returns the id of its run.
func (r *replicas) do(ctx context.Context, at *runs.Store, steps ...step) (run string, err error) {
	deps := r.deps
	deps.Runs = at.Of(benchCaller)
	p, mistakes := stages.Compile(ctx, []byte(pipelineOf(steps...)), deps)
	if mistakes != nil {
		return "", mistakes[0]
	}
	report, err := p.Run(ctx, nil, io.Discard, stages.RunOptions{})
	if err != nil {
		return "", fmt.Errorf("running: %w", err)
	}
	return report.Run, nil
}

func (r *replicas) run(ctx context.Context) error {
	_, err := r.do(ctx, r.first, step{"type": "tool", "server": serverName, "name": "hello"})
	return err
}

func (r *replicas) runAlone(ctx context.Context) error {
	_, err := r.do(ctx, r.alone, step{"type": "tool", "server": serverName, "name": "hello"})
	return err
}

func (r *replicas) fromOther(ctx context.Context) error {
	_, err := r.do(ctx, r.second, step{"type": "from", "run": <-r.ids})
	return err
}

func (r *replicas) fromOwn(ctx context.Context) error {
	_, err := r.do(ctx, r.alone, step{"type": "from", "run": r.own})
	return err
}
