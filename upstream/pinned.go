package upstream

import (
	"cmp"
	"context"

	"github.com/mcsh-dev/mcsh/upstream/pins"
)

// newPins returns nil for a server of this process: its tools are part of the binary.
func (sc *serverConn) newPins() *pins.Pins {
	o := &sc.pool.options
	if sc.server.InProcess {
		return nil
	}
	return pins.New(pins.Options{
		Server: sc.server.Name, Key: sc.server.key(), Dir: cmp.Or(o.Look, o.State), Hold: o.Pin, Look: o.Look != nil, Most: o.Tools,
		Life: sc.life, Hide: sc.hide, Report: o.OnUntrusted,
	})
}

// pinsOf returns the pins of a server, if it has a file for them.
func (p *Pool) pinsOf(ctx context.Context, server string) (*pins.Pins, error) {
	sc, err := p.named(ctx, server)
	if err != nil || sc.pins == nil || sc.pins.Dir == nil {
		return nil, err
	}
	return sc.pins, nil
}

// Pending returns the tools that wait for somebody to accept them, as the gateways have seen them last. It asks no server.
func (p *Pool) Pending(ctx context.Context, server string) ([]pins.Pending, error) {
	known, err := p.pinsOf(ctx, server)
	if known == nil {
		return nil, err
	}
	return known.Pending()
}

// Accept trusts tools of one server. Those that have changed again meanwhile stay as they were, and are returned.
func (p *Pool) Accept(ctx context.Context, server string, tools []pins.Pending) (missed []pins.Pending, err error) {
	known, err := p.pinsOf(ctx, server)
	if known == nil {
		return tools, err
	}
	return known.Accept(ctx, tools)
}
