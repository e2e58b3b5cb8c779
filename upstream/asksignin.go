package upstream

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/questions"
	"github.com/mcsh-dev/mcsh/upstream/remote"
)

// SignIns begins sign-ins of people. Its method may be called concurrently.
type SignIns interface {
	// Begin begins a sign-in to a server that asks for scopes, too. It returns the address of a page for the person, and a
	// function that waits until somebody has signed in, and ends the sign-in. The pool calls that once, also with a context that
	// has ended.
	Begin(ctx context.Context, e Endpoint, scopes []string) (page string, wait func(context.Context) error, err error)
}

const (
	signInWait = 10 * time.Minute // for a person

	// After its end an answer counts for those who were refused before it, and a refusal for all: not each item of a for_each
	// asks.
	acceptedPause = 10 * time.Second
	refusedPause  = time.Minute
)

// askedPeople are the questions to sign in, by server. [Options.SignIns] says that all callers are one person, so all of them
// wait for one answer.
type askedPeople struct {
	mu  sync.Mutex
	all map[string]*asked // guarded by mu
}

// An asked is the answer of a person.
type asked struct {
	done     chan struct{}
	signedIn bool      // after done
	lost     bool      // after done: its call has ended before the person had answered
	ended    time.Time // after done
}

// SignIn asks the person of a caller to sign in to the servers that an error says want it, and waits for that. It reports whether
// somebody has signed in, so that another try makes sense. The caller is asked on a page of our own.
func (p *Pool) SignIn(ctx context.Context, asker *stages.Asker, err error) bool {
	if p.options.SignIns == nil || asker == nil || !asker.URL || asker.Ask == nil {
		return false
	}
	signedIn := false
	for _, one := range signedOut(err) {
		signedIn = p.signInTo(ctx, asker, one) || signedIn
	}
	return signedIn
}

// A demand is what a server wants of a person.
type demand struct {
	server string
	scopes []string
}

// A begunCall is the cause of the error of a call that the server may have begun: it is not made again after a sign-in.
type begunCall struct{ error }

func (b begunCall) Unwrap() error { return b.error }

// begun gives the error of a call that the server may have begun that cause.
func begun(err error) error {
	if e, ok := errors.AsType[*stages.Error](err); ok && e.Err != nil {
		e.Err = begunCall{e.Err}
	}
	return err
}

// signedOut returns the demands in an error, which may be joined of several, each server once. The error of a call that the
// server may have begun has none.
func signedOut(err error) (all []demand) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			for _, d := range signedOut(one) {
				if !slices.ContainsFunc(all, func(other demand) bool { return other.server == d.server }) {
					all = append(all, d)
				}
			}
		}
		return all
	}
	if _, did := errors.AsType[begunCall](err); did {
		return nil
	}
	if server, scopes, ok := remote.SignedOut(err); ok {
		return []demand{{server, scopes}}
	}
	return nil
}

// signInTo asks for one server, or waits for the answer to the same question. If the call that has asked ends without an answer,
// one of those that wait asks.
func (p *Pool) signInTo(ctx context.Context, asker *stages.Asker, d demand) bool {
	defer pause(asker)()
	for ctx.Err() == nil {
		a, first := p.asked.join(d.server)
		if first {
			p.answer(ctx, asker, d, a)
		}
		select {
		case <-a.done:
			if !a.lost {
				return a.signedIn
			}
		case <-ctx.Done():
		}
	}
	return false
}

// answer asks for one server and keeps the answer in a.
func (p *Pool) answer(ctx context.Context, asker *stages.Asker, d demand, a *asked) {
	defer close(a.done)
	err := p.askPerson(ctx, asker, d)
	a.signedIn, a.lost, a.ended = err == nil, err != nil && ctx.Err() != nil, time.Now()
}

// join returns the question for a server, and reports whether it is a new one.
func (q *askedPeople) join(server string) (a *asked, first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a = q.all[server]; a != nil && a.counts() {
		return a, false
	}
	if q.all == nil {
		q.all = map[string]*asked{}
	}
	a = &asked{done: make(chan struct{})}
	q.all[server] = a
	return a, true
}

// counts reports whether a question is open, or its answer so new that it counts.
func (a *asked) counts() bool {
	select {
	case <-a.done:
	default:
		return true
	}
	if a.lost {
		return false
	}
	if a.signedIn {
		return time.Since(a.ended) < acceptedPause
	}
	return time.Since(a.ended) < refusedPause
}

// askPerson asks a caller to sign in to a server, and waits until somebody has.
func (p *Pool) askPerson(ctx context.Context, asker *stages.Asker, d demand) error {
	sc, err := p.conn(ctx, d.server)
	if err != nil {
		return err
	}
	e := sc.server.Endpoint
	if e == nil {
		return fmt.Errorf("server %q has no address", d.server)
	}
	ctx, cancel := context.WithTimeout(ctx, signInWait)
	defer cancel()
	page, wait, err := p.options.SignIns.Begin(ctx, *e, d.scopes)
	if err != nil {
		return err
	}
	if err := p.invite(ctx, asker, d.server, page); err != nil {
		ended, cancel := context.WithCancelCause(ctx)
		cancel(err)
		_ = wait(ended) // it ends the sign-in
		return err
	}
	return wait(ctx)
}

// pause pauses the clocks of an asker, if it has any, until resume is called. The call itself has none meanwhile: it is
// made again after the sign-in, with its whole time.
func pause(asker *stages.Asker) (resume func()) {
	if asker.Pause == nil {
		return func() {}
	}
	return asker.Pause()
}

// invite asks the caller to open a page.
func (p *Pool) invite(ctx context.Context, asker *stages.Asker, server, page string) error {
	answer, err := asker.Ask(ctx, stages.Question{
		Server: server, Method: "elicitation/create", Own: true, Params: json.RawMessage(texts.JSON(map[string]string{
			"mode": "url", "elicitationId": rand.Text(), "url": page,
			"message": fmt.Sprintf("The server %q wants you to sign in. Open the sign-in page of mcsh; the call then goes on.", server),
		})),
	})
	if err != nil {
		return err
	}
	if questions.ActionOf(answer) != "accept" {
		return fmt.Errorf("the person does not sign in to %q now", server)
	}
	return nil
}
