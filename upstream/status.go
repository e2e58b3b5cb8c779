package upstream

import (
	"context"

	"github.com/mcsh-dev/mcsh/stages"
)

// Further values of [ServerStatus].Status; see [StatusReady] for the others.
const (
	StatusIdle    = "idle"    // not needed yet
	StatusResting = "resting" // ended because it was unused for a while; the next use starts it

	StatusDisabled = "disabled" // by an operator: see [Pool.Disable]
)

// A ServerStatus is the status of a server at this moment.
type ServerStatus struct {
	Server string
	Status string
	Code   stages.Code // of the failure, if Status is failed
	Where  string      // it is configured; may be empty
}

// Statuses returns the status of all servers, sorted by name. It asks nobody, starts nothing and never waits.
func (p *Pool) Statuses() []ServerStatus {
	list := []ServerStatus{}
	for _, sc := range p.all(context.Background()) {
		list = append(list, sc.usedStatus())
	}
	return list
}

// Wake starts a server, unless it runs or is disabled, and does not wait for it. An unknown name is ignored.
func (p *Pool) Wake(server string) {
	p.mu.Lock()
	sc := p.conns[server]
	p.mu.Unlock()
	if sc == nil {
		return
	}
	if s := sc.serverStatus().Status; s == StatusIdle || s == StatusFailed {
		sc.tools.mu.Lock()
		defer sc.tools.mu.Unlock()
		sc.tools.begin()
	}
}

// serverStatus returns the status, as far as it is known without a request.
func (sc *serverConn) serverStatus() ServerStatus {
	now := sc.state()
	s := ServerStatus{Server: sc.server.Name, Where: sc.server.Where}
	switch {
	case sc.disabled:
		s.Status = StatusDisabled
	case now.resting:
		s.Status = StatusResting
	case now.alive() && now.degraded:
		s.Status = StatusDegraded
	case now.alive():
		s.Status = StatusReady
	case now.failure != nil: // also during the next start
		s.Status, s.Code = StatusFailed, asError(now.failure).Code
	case now.start != nil:
		s.Status = StatusStarting
	case now.session != nil: // it has ended, and was not needed since
		s.Status, s.Code = StatusFailed, stages.ServerUnavailable
	default:
		s.Status = StatusIdle
	}
	return s
}

// usedStatus is the status of the connection, or of one for other callers if it is not in use itself.
func (sc *serverConn) usedStatus() ServerStatus {
	s := sc.serverStatus()
	if s.Status != StatusIdle && s.Status != StatusResting {
		return s
	}
	for _, other := range sc.variants() {
		if o := other.serverStatus(); o.Status != StatusIdle && (s.Status == StatusIdle || o.Status != StatusResting) {
			s = o
		}
	}
	return s
}
