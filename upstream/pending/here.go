package pending

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/upstream/browser"
	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// lookPause is the time between two looks whether somebody has signed in elsewhere.
const lookPause = time.Second

// Here begins a sign-in on a page of this machine, which is served until the sign-in ends. It returns the address of the page,
// and a function that waits until somebody has signed in to the server, there or elsewhere, and ends the sign-in. The caller
// calls it once, also with a context that has ended.
func (p *SignIns) Here(ctx context.Context, server signin.Server) (address string, wait func(context.Context) error, err error) {
	listener, err := browser.Listen(server.CallbackPort)
	if err != nil {
		return "", nil, err
	}
	s, err := p.begin(ctx, server, way{listener.URI, strings.TrimSuffix(listener.URI, callbackPath) + startPath, false})
	if err != nil {
		return "", nil, errors.Join(err, listener.Close())
	}
	serving, stop := context.WithCancel(p.life)
	if !p.run(func() { _ = listener.Serve(serving, p) }) { // until stop
		stop()
		p.forget(s)
		return "", nil, errors.Join(errClosing, listener.Close())
	}
	begun := time.Now()
	return s.Address, func(ctx context.Context) error {
		defer stop()
		defer p.forget(s)
		return p.wait(ctx, s, begun)
	}, nil
}

// wait waits for the end of a sign-in, or for another one to the server.
func (p *SignIns) wait(ctx context.Context, s *SignIn, begun time.Time) error {
	look := time.NewTicker(lookPause)
	defer look.Stop()
	for {
		select {
		case <-s.done:
			return s.err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
			if p.signedIn(s.Server, begun) {
				return nil
			}
		}
	}
}

// signedIn reports whether somebody has signed in to a server since a time.
func (p *SignIns) signedIn(server string, since time.Time) bool {
	list, err := p.o.Store.Of(server, "")
	return err == nil && slices.ContainsFunc(list, func(l logins.Login) bool { return l.Made.After(since) && l.Works(time.Now()) })
}
