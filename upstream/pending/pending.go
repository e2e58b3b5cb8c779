package pending

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// Bounds of the sign-ins of a gateway.
const (
	Most     = 16               // that have begun and not ended
	lifetime = 10 * time.Minute // of one, by default
	shown    = time.Minute      // in which the end of one can be asked for
	tokenMax = time.Minute      // for the answer of the issuer with the tokens
)

// Errors of sign-ins.
var (
	ErrMany    = fmt.Errorf("there are %d unfinished sign-ins in this gateway", Most)
	ErrUnknown = errors.New("the gateway has no such sign-in: it has ended, or the gateway was restarted")
	ErrLate    = errors.New("nobody signed in in time")

	// ErrListen is the error of a gateway without pages for browsers: its caller has to wait for the browser.
	ErrListen = errors.New("the gateway has no address for browsers")

	// ErrAddress is the error of an address that a sign-in does not end at.
	ErrAddress = errors.New("this is not the address that the sign-in has led to")

	errCancelled = errors.New("the sign-in was given up")
	errClosing   = errors.New("the gateway is closing")
)

// Options are those of the sign-ins of a gateway.
type Options struct {
	Store *logins.Store

	// Public is the address below which browsers reach the pages, such as https://mcp.example.com/oauth. Empty: they do not.
	Public string

	Lifetime time.Duration // of a sign-in that nobody finishes; 0: 10 minutes
}

// SignIns are the sign-ins of a gateway that have begun. Its methods may be called concurrently.
type SignIns struct {
	o       Options
	life    context.Context // ends with Close
	end     context.CancelCauseFunc
	running sync.WaitGroup

	mu  sync.Mutex
	all map[string]*SignIn // by id, nil before it is published; guarded by mu
}

// New returns the sign-ins of a gateway. The caller closes them.
func New(o Options) *SignIns {
	o.Lifetime = cmp.Or(o.Lifetime, lifetime)
	p := &SignIns{o: o, all: map[string]*SignIn{}}
	p.life, p.end = context.WithCancelCause(context.Background())
	return p
}

// Close ends all sign-ins.
func (p *SignIns) Close() {
	p.mu.Lock()
	p.end(errClosing)
	p.mu.Unlock()
	p.running.Wait()
}

// run runs f in a goroutine, and reports false after Close.
func (p *SignIns) run(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life.Err() != nil {
		return false
	}
	p.running.Go(f)
	return true
}

// A SignIn is one that has begun.
type SignIn struct {
	ID      string // a secret of the person who began it
	Server  string
	Issuer  string
	Address string    // that the person opens
	Code    string    // that the person enters there; empty: none
	Warning string    // what the person should know before; empty: nothing
	Ends    time.Time // if nobody has signed in

	host    string // of the server
	server  signin.Server
	attempt *signin.Attempt // nil: on another device
	paged   bool            // the address is that of our page
	shared  bool            // others than the person use the sign-in, too
	life    context.Context // ends with the sign-in
	cancel  context.CancelFunc

	mu      sync.Mutex
	browser string // what the cookie of the browser has; empty: no browser has it yet; guarded by mu
	ending  bool   // a redirected address is being used; guarded by mu
	ended   bool   // guarded by mu
	done    chan struct{}
	login   logins.Login // after done
	err     error        // after done
}

// secret returns 256 random bits.
func secret() string {
	var random [32]byte
	_, _ = rand.Read(random[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(random[:])
}

// A way is how the browser of a sign-in comes back.
type way struct {
	redirect string // address that the issuer sends it to
	page     string // of ours, that it begins at; empty: it begins at the issuer
	shared   bool   // others than the person use the sign-in, too
}

// Begin begins a sign-in. The caller waits for the browser at redirect, an address of its own machine, and brings the redirected
// address to Finish. If redirect is empty, the browser comes to the pages at [Options.Public]; the error wraps [ErrListen] if
// there are none, or a client is registered for a port of the caller's machine.
func (p *SignIns) Begin(ctx context.Context, server signin.Server, redirect string) (*SignIn, error) {
	switch {
	case redirect != "":
		if err := checkRedirect(redirect); err != nil {
			return nil, err
		}
		return p.begin(ctx, server, way{redirect: redirect})
	case p.o.Public == "" || server.CallbackPort != 0:
		return nil, ErrListen
	}
	return p.begin(ctx, server, way{p.o.Public + callbackPath, p.o.Public + startPath, true})
}

// checkRedirect accepts addresses of the caller's machine only: a code goes nowhere else.
func checkRedirect(redirect string) error {
	u, err := url.Parse(redirect)
	if err != nil || u.Scheme != "http" || u.Hostname() != "127.0.0.1" && u.Hostname() != "localhost" || u.Port() == "" ||
		u.Path != callbackPath || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("the redirect address is not http://127.0.0.1:PORT%s", callbackPath)
	}
	return nil
}

func (p *SignIns) begin(ctx context.Context, server signin.Server, w way) (*SignIn, error) {
	s, err := p.add(server)
	if err != nil {
		return nil, err
	}
	target, err := Find(ctx, p.o.Store, server)
	if err == nil {
		s.Issuer, s.Warning = target.Issuer, target.Warning()
		s.attempt, err = target.Begin(ctx, w.redirect)
	}
	if err != nil {
		p.forget(s)
		return nil, err
	}
	s.Address, s.paged, s.shared = s.attempt.URL, w.page != "", w.shared
	if s.paged {
		s.Address = w.page + "?" + url.Values{idField: {s.ID}}.Encode()
	}
	p.publish(s)
	return s, nil
}

// Device begins a sign-in on another device.
func (p *SignIns) Device(ctx context.Context, server signin.Server) (*SignIn, error) {
	s, err := p.add(server)
	if err != nil {
		return nil, err
	}
	target, err := Find(ctx, p.o.Store, server)
	if err != nil {
		p.forget(s)
		return nil, err
	}
	s.Issuer, s.Warning = target.Issuer, target.Moved()
	shown := make(chan struct{})
	began := p.run(func() {
		login, err := target.Device(s.life, func(address, code string) {
			s.Address, s.Code = address, code
			close(shown)
		})
		if err == nil {
			err = Keep(s.life, p.o.Store, server, login)
		}
		s.finish(login, err)
	})
	if !began {
		p.forget(s)
		return nil, errClosing
	}
	select {
	case <-shown:
		p.publish(s)
		return s, nil
	case <-s.done: // also after the end of its life
		p.forget(s)
		return nil, s.err
	case <-ctx.Done():
		p.forget(s)
		return nil, context.Cause(ctx)
	}
}

// add takes one of the places. Nobody finds the sign-in before publish.
func (p *SignIns) add(server signin.Server) (*SignIn, error) {
	u, err := url.Parse(server.URL)
	if err != nil {
		return nil, errors.New("the address of the server is malformed")
	}
	s := &SignIn{
		ID: secret(), Server: server.Name, server: server, host: u.Host, Ends: time.Now().Add(p.o.Lifetime), done: make(chan struct{}),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	open := 0
	for _, other := range p.all {
		if other == nil || !other.over() {
			open++
		}
	}
	switch {
	case p.life.Err() != nil:
		return nil, errClosing
	case open >= Most:
		return nil, ErrMany
	}
	p.all[s.ID] = nil
	s.life, s.cancel = context.WithDeadlineCause(p.life, s.Ends, ErrLate)
	return s, nil
}

// publish makes a sign-in known by its id, until some time after its end, for the person who began it and asks how it ended.
func (p *SignIns) publish(s *SignIn) {
	p.mu.Lock()
	p.all[s.ID] = s
	p.mu.Unlock()
	context.AfterFunc(s.life, func() {
		s.finish(logins.Login{}, context.Cause(s.life))
		time.AfterFunc(shown, func() { p.forget(s) })
	})
}

// forget ends a sign-in that nobody asks for any more.
func (p *SignIns) forget(s *SignIn) {
	s.finish(logins.Login{}, errCancelled)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, s.ID)
}

// find returns a sign-in by its id.
func (p *SignIns) find(id string) (*SignIn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.all[id]; s != nil {
		return s, nil
	}
	return nil, ErrUnknown
}

// over reports whether a sign-in has ended.
func (s *SignIn) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// finish ends a sign-in, once.
func (s *SignIn) finish(login logins.Login, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended, s.login, s.err = true, login, err
		close(s.done)
		s.cancel()
	}
}

// ServerOf returns the server of a sign-in; "": there is no such sign-in.
func (p *SignIns) ServerOf(id string) string {
	s, err := p.find(id)
	if err != nil {
		return ""
	}
	return s.Server
}

// Wait waits until a sign-in has ended, and returns its login.
func (p *SignIns) Wait(ctx context.Context, id string) (logins.Login, error) {
	s, err := p.find(id)
	if err != nil {
		return logins.Login{}, err
	}
	select {
	case <-s.done:
		return s.login, s.err
	case <-ctx.Done():
		return logins.Login{}, context.Cause(ctx)
	}
}

// Finish ends a sign-in with the address that the browser was redirected to. Another address does not end it: the error is
// [ErrAddress].
func (p *SignIns) Finish(ctx context.Context, id, address string) (logins.Login, error) {
	s, err := p.find(id)
	if err != nil {
		return logins.Login{}, err
	}
	if s.attempt == nil || !s.attempt.Answers(address) {
		return logins.Login{}, ErrAddress
	}
	p.complete(s, address)
	return p.Wait(ctx, id)
}

// complete exchanges the redirected address for a login, once. Its caller may go away meanwhile: the code in it cannot be used again.
func (p *SignIns) complete(s *SignIn, address string) {
	s.mu.Lock()
	first := !s.ending && !s.ended
	s.ending = true
	s.mu.Unlock()
	if !first {
		return
	}
	p.run(func() {
		ctx, cancel := context.WithTimeout(context.Background(), tokenMax)
		defer cancel()
		login, err := s.attempt.Finish(ctx, address)
		if err == nil {
			err = Keep(ctx, p.o.Store, s.server, login)
		}
		s.finish(login, err)
	})
}

// Cancel gives a sign-in up.
func (p *SignIns) Cancel(id string) error {
	s, err := p.find(id)
	if err == nil {
		p.forget(s)
	}
	return err
}

// issuerHost is the host of the issuer's pages, for people.
func (s *SignIn) issuerHost() string {
	if u, err := url.Parse(s.attempt.URL); err == nil {
		return texts.Cut(u.Host, 200)
	}
	return texts.Cut(s.Issuer, 200)
}
