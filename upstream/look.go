package upstream

import (
	"context"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/remote"
)

// A Look is what is known of a server at this moment.
type Look struct {
	ServerStatus
	Failure   error     // of the last start, if Status is failed
	SignIn    bool      // a person may sign in, which would help
	Transport string    // stdio, http or built in
	Protocol  string    // the version that the session speaks; empty: there is none
	Started   time.Time // of the session; zero: there is none
	Stderr    string    // the last lines that a program wrote to its standard error
	Tools     int       // that may be called; -1: the list is not known
	Untrusted int       // tools that are new or have changed, without those that the operator does not allow
}

// Looks returns what is known of the servers that the view of ctx shows, disabled ones too, sorted by name. It asks nobody, starts
// nothing and never waits for a server.
func (p *Pool) Looks(ctx context.Context) []Look {
	_ = p.Load(ctx) // the next request for tools reports the error
	list := []Look{}
	for _, sc := range p.all(ctx) {
		list = append(list, p.latest(sc).look())
	}
	return list
}

func (sc *serverConn) look() Look {
	l := Look{ServerStatus: sc.usedStatus(), Transport: "stdio", Tools: -1}
	switch {
	case sc.server.InProcess:
		l.Transport = "built in"
	case sc.server.Endpoint != nil:
		l.Transport = "http"
	}
	now := sc.state()
	if l.Status == StatusFailed && now.failure != nil {
		l.Failure, l.SignIn = sc.hideError(asError(now.failure)), remote.NeedsSignIn(now.failure)
	}
	if s := sc.running(); s != nil {
		l.Protocol, l.Started = s.Version, s.Started
	}
	if now.session != nil {
		stderr, _ := outputOf(now.session.Transport)
		l.Stderr = sc.hide(stderr)
	}
	if list := sc.tools.latest(); list != nil && !sc.disabled {
		l.Tools = len(list.Names())
		if sc.pins != nil {
			changed, unknown := sc.pins.Untrusted(list)
			l.Untrusted = len(changed) + len(unknown)
		}
	}
	return l
}

// Restart ends the sessions with a server, when their calls in flight have ended, and starts it anew.
func (p *Pool) Restart(ctx context.Context, server string) error {
	sc, err := p.firstConn(ctx, server)
	if err != nil {
		return err
	}
	if sc.server.InProcess {
		return stages.Errorf(stages.Denied, "restart the gateway", "server %q is a part of the gateway", server)
	}
	for _, one := range append(sc.variants(), sc) {
		one.mu.Lock()
		s := one.current
		one.failures, one.retryAt, one.failure, one.resting = 0, time.Time{}, nil, false
		one.mu.Unlock()
		if s != nil {
			one.discard(s)
		}
		one.tools.invalidate()
	}
	sc.tools.mu.Lock()
	defer sc.tools.mu.Unlock()
	sc.tools.begin()
	return nil
}

// A Message is a message of the protocol between the gateway and a server.
type Message struct {
	Server string
	Out    bool // the gateway has sent it
	At     time.Time
	Text   string // its beginning, without secrets
	Size   int    // bytes
}

// maxSeen bounds the text of a Message, in bytes.
const maxSeen = 16 << 10

// Tap calls f with every message from now on, until the tap is set again; nil: nobody looks. f must not block.
func (p *Pool) Tap(f func(Message)) {
	if f == nil {
		p.tap.Store(nil)
		return
	}
	p.tap.Store(&f)
}

// seen returns what is called with the messages of the server, nil if nobody looks.
func (sc *serverConn) seen() func(out bool, msg []byte) {
	tap := sc.pool.tap.Load()
	if tap == nil {
		return nil
	}
	return func(out bool, msg []byte) {
		text := string(msg[:min(len(msg), 2*maxSeen)]) // a secret across the bound is hidden, too
		if s := sc.state().session; s != nil {
			text = hideIn(s.Transport, text)
		}
		text = sc.hide(text)
		(*tap)(Message{sc.server.Name, out, time.Now(), texts.Fit(text, maxSeen), len(msg)})
	}
}
