package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// startWait is how long a command waits for servers that are still starting.
const startWait = 30 * time.Second

// Parts are what pipelines run on. Nothing of them is started before it is used.
type parts struct {
	upstream *upstream.Pool
	sandbox  *lazySandbox
	limits   stages.Limits
}

// open puts the parts together. A mistake in the configuration is an error.
func (p *program) open(ctx context.Context, s settings, warm int) (*parts, error) {
	open, err := findBackend(s.backend, backends)
	if err != nil {
		return nil, err
	}
	tools, err := p.openUpstream(ctx, s)
	if err != nil {
		return nil, err
	}
	return &parts{
		upstream: tools,
		limits:   s.limits,
		sandbox:  &lazySandbox{start: func() (*sandbox.Pool, error) { return open(ctx, p, warm) }},
	}, nil
}

// openUpstream reads the sources and makes the pool of their servers.
func (p *program) openUpstream(ctx context.Context, s settings) (*upstream.Pool, error) {
	list, err := p.openSources(s)
	if err != nil {
		return nil, err
	}
	pool := upstream.NewPool(upstream.Options{Sources: list, ClientVersion: version(), ReadOnly: s.readOnly, CallTimeout: s.limits.Call})
	if err := pool.Load(ctx); err != nil {
		return nil, errors.Join(configError("mend the configuration; nothing was started", err), pool.Close())
	}
	return pool, nil
}

// deps is what the engine may call.
func (x *parts) deps() stages.Deps {
	return stages.Deps{Tools: x.upstream, Commands: x.sandbox, Shapes: schemas.NewShapes(stages.Kinds()), Limits: x.limits}
}

// Close ends all servers and workers. It returns when their processes are gone.
func (x *parts) close() error { return errors.Join(x.upstream.Close(), x.sandbox.Close()) }

// A lazySandbox starts its backend when the first command asks for it: many pipelines have none, and the audit of a
// backend takes longer than they do.
type lazySandbox struct {
	start func() (*sandbox.Pool, error)

	once sync.Once
	pool *sandbox.Pool
	err  error
}

// get returns the pool, or why there is none.
func (l *lazySandbox) get() (*sandbox.Pool, error) {
	l.once.Do(func() { l.pool, l.err = l.start() })
	return l.pool, l.err
}

// CheckCommand implements [stages.Commands].
func (l *lazySandbox) CheckCommand(c stages.Command) error {
	pool, err := l.get()
	if err != nil {
		return noCommands(err)
	}
	return pool.CheckCommand(c)
}

// Open implements [stages.Commands].
func (l *lazySandbox) Open(ctx context.Context) (stages.Session, error) {
	pool, err := l.get()
	if err != nil {
		return nil, noCommands(err)
	}
	return pool.Open(ctx)
}

func noCommands(err error) error {
	return stages.Errorf(stages.DisallowedCommand, "mcsh commands shows what can run here; tool and preview stages work without",
		"no command can run here: %w", err)
}

// Close ends the workers if there are any.
func (l *lazySandbox) Close() error {
	l.once.Do(func() { l.err = errors.New("the sandbox is closed") })
	if l.pool == nil {
		return nil
	}
	return l.pool.Close()
}
