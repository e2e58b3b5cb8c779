// Command mcsh-temporal is mcsh with an engine of durable runs: gateways submit them to Temporal, and do them.
package main

import (
	"context"
	"log/slog"

	"go.uber.org/zap/exp/zapslog"

	"github.com/mcsh-dev/mcsh/cli"
	"github.com/mcsh-dev/mcsh/engine/temporal"
	"github.com/mcsh-dev/mcsh/gateway"
)

// noStacks keeps the stacks of the SDK out of the log: a warning or error of it is one line.
var noStacks = zapslog.AddStacktraceAt(slog.LevelError + 1)

func main() { cli.Main(connect) }

func connect(ctx context.Context, o cli.EngineOptions) (cli.Engines, error) {
	e, err := temporal.Dial(ctx, temporal.Options{
		Address: o.Address, Namespace: o.Namespace, TLS: o.TLS, APIKey: o.APIKey, Log: slog.New(zapslog.NewHandler(o.Log.Core(), noStacks)),
	})
	if err != nil {
		return cli.Engines{}, err
	}
	return cli.Engines{Runs: engine{e}, Shards: engine{e.WithQueueSuffix("shards")}, Close: e.Close}, nil
}

var _ gateway.Engine = engine{}

// engine is what a gateway asks of Temporal.
type engine struct{ *temporal.Engine }

// Progress implements [gateway.Engine].
func (e engine) Progress(ctx context.Context, job string) (details []byte, attempts int, err error) {
	p, err := e.Engine.Progress(ctx, job)
	if !p.Running { // what is to come is no attempt yet
		p.Attempt = max(p.Attempt-1, 0)
	}
	return p.Details, p.Attempt, err
}
