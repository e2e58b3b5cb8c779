package cli

import (
	"context"
	"fmt"

	"github.com/mcsh-dev/mcsh/ui"
	"github.com/mcsh-dev/mcsh/upstream/pins"
)

// consoleServers answers for the servers of a gateway.
type consoleServers struct{ *shown }

// Servers implements [ui.Servers].
func (s consoleServers) Servers(ctx context.Context) []ui.ServerState {
	pool, ctx := s.pool(ctx)
	return convert(looks(ctx, pool, s.parts.monitor.metrics), func(l look) ui.ServerState {
		return ui.ServerState{
			Name: l.Server, Status: l.Status, Where: l.Where, Transport: l.Transport, Protocol: l.Protocol, Started: l.Started, Tools: l.Tools,
			SignIn: l.SignIn, Stderr: l.Stderr, Own: l.Transport == "built in", Changed: l.Untrusted, Why: l.why, Hint: l.hint,
			Calls: l.Calls, Errors: l.Errors, P50: l.P50, P95: l.P95,
		}
	})
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

// Disable implements [ui.Servers].
func (s *shown) Disable(ctx context.Context, server string) error {
	pool, ctx := s.pool(ctx)
	return pool.Disable(ctx, server)
}

// Enable implements [ui.Servers].
func (s *shown) Enable(ctx context.Context, server string) error {
	pool, ctx := s.pool(ctx)
	return pool.Enable(ctx, server)
}
