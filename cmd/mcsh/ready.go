package main

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/observe"
	"github.com/mcsh-dev/mcsh/upstream"
)

// up are the states of a server that serves, at once or when it is needed.
var up = []string{upstream.StatusReady, upstream.StatusDegraded, upstream.StatusResting}

// servers says how the servers are.
func (l *lookout) servers() []observe.Server {
	var list []observe.Server
	for _, s := range l.parts.upstream.Standings() {
		list = append(list, observe.Server{Name: s.Server, State: s.Status, Up: slices.Contains(up, s.Status)})
	}
	return list
}

// conditions are what the gateway needs in order to serve. A required server that has failed is tried again.
func (l *lookout) conditions() []observe.Condition {
	self := observe.Condition{Name: "gateway", Ready: true, State: "serving"}
	if l.life.Err() != nil {
		self = observe.Condition{Name: "gateway", State: "stopping", Why: "it has been told to end"}
	}
	list := []observe.Condition{self, l.sandbox.condition()}
	if l.callers.asked {
		list = append(list, l.callers.condition())
	}
	standings := l.parts.upstream.Standings()
	for _, name := range l.flags.required {
		if name == "*" {
			for _, s := range standings {
				list = append(list, l.required(s))
			}
			continue
		}
		at := slices.IndexFunc(standings, func(s upstream.Standing) bool { return s.Server == name })
		if at < 0 {
			list = append(list, observe.Condition{Name: "server " + name, State: "unknown", Why: "no configuration names it, and it was not found"})
			continue
		}
		list = append(list, l.required(standings[at]))
	}
	return list
}

// required is whether a server serves. Of a failure it says the code alone: the words can be the server's own.
func (l *lookout) required(s upstream.Standing) observe.Condition {
	c := observe.Condition{Name: "server " + s.Server, Ready: slices.Contains(up, s.Status), State: s.Status}
	if c.Ready || l.life.Err() != nil {
		return c
	}
	l.parts.upstream.Wake(s.Server)
	c.Why = "it has not answered yet"
	if s.Status == upstream.StatusFailed {
		c.Why = fmt.Sprintf("%s; mcsh doctor and list_all_tools say more", s.Code)
	}
	return c
}

// A callersStanding knows whether callers can show who they are.
type callersStanding struct {
	asked bool
	guard atomic.Pointer[auth.Guard] // nil: not yet there
}

// condition is whether anybody can be let in.
func (c *callersStanding) condition() observe.Condition {
	g := c.guard.Load()
	if g == nil || g.Ready() != nil {
		return observe.Condition{Name: "callers", State: "unknown", Why: "the issuer of their tokens, or its keys, cannot be had, so nobody can be let in; the log says why"}
	}
	return observe.Condition{Name: "callers", Ready: true, State: "known"}
}

// A sandboxStanding knows how the sandbox is, without ever waiting for it.
type sandboxStanding struct{ last atomic.Pointer[sandboxStart] }

// A sandboxStart is how the last start of a backend has ended.
type sandboxStart struct {
	open *opening
	err  error
}

// noting returns a start that is noted.
func (s *sandboxStanding) noting(start func() (*opening, error)) func() (*opening, error) {
	return func() (*opening, error) {
		open, err := start()
		s.last.Store(&sandboxStart{open, err})
		return open, err
	}
}

// condition is whether it is known what commands run in. That there is nothing is an answer too: other stages are served.
func (s *sandboxStanding) condition() observe.Condition {
	switch last := s.last.Load(); {
	case last == nil:
		return observe.Condition{Name: "sandbox", State: "starting", Why: "what commands will run in is being tried"}
	case last.err != nil:
		return observe.Condition{Name: "sandbox", Ready: true, State: "none"}
	default:
		return observe.Condition{Name: "sandbox", Ready: true, State: last.open.pool.Report().Backend}
	}
}

// workers says how busy the sandbox is.
func (s *sandboxStanding) workers() observe.Workers {
	last := s.last.Load()
	if last == nil || last.open == nil {
		return observe.Workers{}
	}
	return observe.Workers(last.open.pool.Load())
}
