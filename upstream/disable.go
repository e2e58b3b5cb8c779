package upstream

import (
	"context"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// Disable takes away all that a server offers, and ends its sessions when their calls in flight have ended, as if no source named it
// any longer. It stays so, also after changes of the sources, until Enable or the end of the pool. A server that is disabled already
// stays as it is.
func (p *Pool) Disable(ctx context.Context, server string) error {
	_, err := p.setDisabled(ctx, server, true)
	return err
}

// Enable makes a disabled server one like all others, and starts it. It does not wait for the start. A server that is not disabled
// stays as it is.
func (p *Pool) Enable(ctx context.Context, server string) error {
	changed, err := p.setDisabled(ctx, server, false)
	if changed {
		p.Wake(server)
	}
	return err
}

// setDisabled replaces the connection to a server, and reports whether it had to.
func (p *Pool) setDisabled(ctx context.Context, server string, disabled bool) (changed bool, err error) {
	if _, err := p.named(ctx, server); err != nil {
		return false, err
	}
	p.mu.Lock()
	if changed = p.disabled[server] != disabled; changed {
		p.disabled[server] = disabled
		same := map[string]*Server{}
		for name, sc := range p.conns {
			same[name] = sc.origin
		}
		p.apply(same)
	}
	p.mu.Unlock()
	if changed {
		p.offersChanged()
		p.serversChanged()
	}
	return changed, nil
}

// anew returns a connection to a server in the place of another one, which may be nil. If that was to the same server, the same tools
// are trusted.
func (p *Pool) anew(s *Server, former *serverConn) *serverConn {
	sc := newServerConn(s, p)
	sc.disabled = p.disabled[s.Name]
	if former != nil && former.is(s) {
		sc.pins.Take(former.pins)
	}
	return sc
}

// disabledError is the error of every use of a disabled server.
func (sc *serverConn) disabledError() error {
	return stages.Errorf(stages.Denied, "use another server, or ask the operator of the gateway to enable it: on its page, or with mcsh servers enable "+
		texts.ShellWord(sc.server.Name), "server %q is disabled by an operator", sc.server.Name)
}

// Disabled returns the names of the disabled servers that the view of ctx shows, sorted.
func (p *Pool) Disabled(ctx context.Context) (names []string) {
	for _, sc := range p.all(ctx) {
		if sc.disabled {
			names = append(names, sc.server.Name)
		}
	}
	return names
}
