package main

import (
	"context"
	"errors"
	"time"

	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// startWait is how long a command waits for servers that are still starting.
const startWait = 30 * time.Second

// Parts are what pipelines run on. Nothing of them is started before it is used.
type parts struct {
	upstream *upstream.Pool
	sandbox  *lateSandbox
	files    *files
	limits   limits
}

// open puts the parts together, which start nothing any more when ctx has ended. A mistake in the configuration is an
// error; reading bounds how long it is read.
func (p *program) open(ctx, reading context.Context, s settings, warm int) (*parts, error) {
	open, err := findBackend(s.sandbox.backend, backends)
	if err != nil {
		return nil, err
	}
	saved, err := openFiles(s)
	if err != nil {
		return nil, err
	}
	tools, err := p.openUpstream(reading, s)
	if err != nil {
		return nil, errors.Join(err, saved.close())
	}
	s.limits.SpoolDir = p.scratchDir()
	starting, end := context.WithCancel(ctx)
	s.sandbox.workspace = saved.root()
	return &parts{
		upstream: tools,
		files:    saved,
		limits:   s.limits,
		sandbox: &lateSandbox{
			ended: starting.Done(), end: end,
			start: func() (*opening, error) { return open(starting, p, s.sandbox, warm) },
		},
	}, nil
}

// openUpstream reads the sources and makes the pool of their servers.
func (p *program) openUpstream(ctx context.Context, s settings) (*upstream.Pool, error) {
	list, err := p.openSources(s)
	if err != nil {
		return nil, err
	}
	dir, err := p.openState(s)
	if err != nil {
		return nil, err
	}
	pool := upstream.NewPool(upstream.Options{
		State:   dir,
		Sources: list, ClientVersion: version(), ReadOnly: s.readOnly, CallTimeout: s.limits.Call, ResultMax: s.limits.withDefaults().result,
		Follow: s.told != nil, Told: s.told, Instance: s.instance,
	})
	if err := pool.Load(ctx); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) { // nothing is wrong with what was not read to its end
			return nil, errors.Join(err, pool.Close())
		}
		return nil, errors.Join(configError("mend the configuration; nothing was started", err), pool.Close())
	}
	return pool, nil
}

// deps is what the engine may call.
func (x *parts) deps() stages.Deps {
	d := stages.Deps{Tools: x.upstream, Commands: x.sandbox, Shapes: schemas.NewShapes(stages.Kinds()), Limits: x.limits.Limits}
	if x.files != nil {
		d.Files = x.files
	}
	return d
}

// Close ends all servers and workers. It returns when their processes are gone.
func (x *parts) close() error {
	return errors.Join(x.upstream.Close(), x.sandbox.Close(), x.files.close())
}
