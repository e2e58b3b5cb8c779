package logins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zalando/go-keyring"
)

// A Keyring keeps secrets of the user. Its methods may be called concurrently, and may hang.
type Keyring interface {
	// Get returns a secret; empty: there is none.
	Get(name string) (string, error)
	Set(name, secret string) error
}

// System is the keyring of this machine: the Secret Service, the keychain of macOS.
type System struct{}

// service names mcsh in the keyring.
const service = "mcsh"

// Get implements [Keyring].
func (System) Get(name string) (string, error) {
	secret, err := keyring.Get(service, name)
	if errors.Is(err, keyring.ErrNotFound) {
		return "", nil
	}
	return secret, err
}

// Set implements [Keyring].
func (System) Set(name, secret string) error { return keyring.Set(service, name, secret) }

const (
	keyringWait  = 2 * time.Second  // for one answer by default: a locked keyring asks its user
	keyringPause = 30 * time.Second // after a failure, before the next question
)

var errNoKeyring = errors.New("there is no keyring")

// A guardedKeyring bounds the calls of a keyring in time. At most one call hangs: no other begins until it ends.
type guardedKeyring struct {
	ring Keyring       // nil: none
	wait time.Duration // for one answer

	calls chan struct{} // one value: no call is in flight

	mu     sync.Mutex
	failed error     // of the last call; guarded by mu
	until  time.Time // the failure counts; guarded by mu
}

func guarded(k Keyring, wait time.Duration) *guardedKeyring {
	g := &guardedKeyring{ring: k, wait: cmp.Or(wait, keyringWait), calls: make(chan struct{}, 1)}
	g.calls <- struct{}{}
	return g
}

func (g *guardedKeyring) get(ctx context.Context, name string) (secret string, err error) {
	return g.call(ctx, func() (string, error) { return g.ring.Get(name) })
}

func (g *guardedKeyring) set(ctx context.Context, name, secret string) error {
	_, err := g.call(ctx, func() (string, error) { return "", g.ring.Set(name, secret) })
	return err
}

func (g *guardedKeyring) call(ctx context.Context, ask func() (string, error)) (string, error) {
	if g.ring == nil {
		return "", errNoKeyring
	}
	if err := g.failure(); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, g.wait, fmt.Errorf("no answer within %s; it may be locked", g.wait))
	defer cancel()
	select {
	case <-g.calls:
	case <-ctx.Done():
		return "", g.remember(context.Cause(ctx))
	}
	type answer struct {
		secret string
		err    error
	}
	answered := make(chan answer, 1)
	go func() { // it may outlive us, because the library does not end a call
		secret, err := ask()
		answered <- answer{secret, err}
		g.calls <- struct{}{}
	}()
	select {
	case a := <-answered:
		return a.secret, g.remember(a.err)
	case <-ctx.Done():
		return "", g.remember(context.Cause(ctx))
	}
}

// failure returns the last failure while it counts.
func (g *guardedKeyring) failure() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failed != nil && time.Now().Before(g.until) {
		return g.failed
	}
	return nil
}

// remember keeps a failure of the keyring. The end of a caller is none.
func (g *guardedKeyring) remember(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failed, g.until = err, time.Now().Add(keyringPause)
	return err
}
