package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/ui"
	"github.com/mcsh-dev/mcsh/upstream/pins"
)

// consoleServers answers for the servers of a gateway.
type consoleServers struct{ *shown }

// Servers implements [ui.Servers].
func (s consoleServers) Servers(ctx context.Context) (list []ui.ServerState) {
	pool, ctx := s.pool(ctx)
	metrics := s.parts.monitor.metrics
	figures := metrics.Figures()
	for _, l := range pool.Looks(ctx) {
		state := ui.ServerState{
			Name: l.Server, Status: l.Status, Where: l.Where, Transport: l.Transport, Protocol: l.Protocol, Started: l.Started, Tools: l.Tools,
			SignIn: l.SignIn, Stderr: l.Stderr, Own: l.Transport == "built in", Changed: l.Untrusted,
		}
		if l.Failure != nil {
			state.Why = reason(l.Server, l.Failure)
			if e, ok := errors.AsType[*stages.Error](l.Failure); ok {
				state.Hint = e.Hint
			}
		}
		if f, called := figures[metrics.Label(l.Server)]; called {
			state.Calls, state.Errors, state.Half, state.Most = f.Calls, f.Errors, f.Half, f.Most
		}
		list = append(list, state)
	}
	return list
}

// Accept implements [ui.Servers].
func (s *shown) Accept(ctx context.Context, server, tool, hash string) error {
	pool, ctx := s.pool(ctx)
	missed, err := pool.Accept(ctx, server, []pins.Pending{{Server: server, Tool: tool, Hash: hash}})
	if err == nil && len(missed) > 0 {
		err = fmt.Errorf("%s has changed again", tool)
	}
	return err
}

// Restart implements [ui.Servers].
func (s *shown) Restart(ctx context.Context, server string) error {
	pool, ctx := s.pool(ctx)
	return pool.Restart(ctx, server)
}
