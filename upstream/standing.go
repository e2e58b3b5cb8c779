package upstream

import (
	"maps"
	"slices"

	"github.com/mcsh-dev/mcsh/stages"
)

// More status words, of a [Standing].
const (
	StatusIdle    = "idle"    // nobody has needed the server yet
	StatusResting = "resting" // it was ended because nobody needed it for a while; the next use starts it
)

// A Standing is how a server is at this moment.
type Standing struct {
	Server string
	Status string
	Code   stages.Code // of what was wrong, where Status is failed
	Tried  bool        // it has answered, or failed, at least once
}

// Standings says how all servers are, sorted by name. It asks nobody, starts nothing and never waits.
func (p *Pool) Standings() []Standing {
	p.mu.Lock()
	units := maps.Clone(p.units)
	p.mu.Unlock()
	list := make([]Standing, 0, len(units))
	for _, name := range slices.Sorted(maps.Keys(units)) {
		list = append(list, units[name].standing())
	}
	return list
}

// Wake starts a server, unless it is there, and does not wait for it. One that there is not is left alone.
func (p *Pool) Wake(server string) {
	p.mu.Lock()
	u := p.units[server]
	p.mu.Unlock()
	if u == nil {
		return
	}
	if s := u.standing().Status; s == StatusIdle || s == StatusFailed {
		u.tools.mu.Lock()
		defer u.tools.mu.Unlock()
		u.tools.begin()
	}
}

// standing is how the server is, as far as is known here.
func (u *unit) standing() Standing {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := Standing{Server: u.server.Name, Tried: u.link != nil || u.failure != nil || u.resting}
	switch {
	case u.resting:
		s.Status = StatusResting
	case u.link != nil && !u.link.dead() && u.trouble > 0:
		s.Status = StatusDegraded
	case u.link != nil && !u.link.dead():
		s.Status = StatusReady
	case u.failure != nil: // also while it is tried again
		s.Status, s.Code = StatusFailed, stages.ServerUnavailable
		if e, ok := asError(u.failure).(*stages.Error); ok {
			s.Code = e.Code
		}
	case u.start != nil:
		s.Status = StatusStarting
	case u.link != nil: // it has ended, and nobody has needed it since
		s.Status, s.Code = StatusFailed, stages.ServerUnavailable
	default:
		s.Status = StatusIdle
	}
	return s
}
