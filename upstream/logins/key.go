package logins

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/mcsh-dev/mcsh/internal/namedfile"
)

const keySize = 32 // of AES-256

// keys finds the keys of files.
type keys struct {
	file string // of the operator; empty: none
	ring *guardedKeyring

	kept sync.Map // keys of the keyring, each []byte, by the ids of their entries
}

// of returns the key of a file.
func (k *keys) of(ctx context.Context, h header) ([]byte, error) {
	var key []byte
	var err error
	switch h.kind {
	case plain:
		return nil, nil
	case inKeyFile:
		if k.file == "" {
			return nil, errors.New("it is sealed with a key file: name that with --token-key-file")
		}
		key, err = readKeyFile(k.file)
	default:
		key, err = k.fromKeyring(ctx, h.id)
	}
	if err != nil {
		return nil, err
	}
	if fingerprint(key) != h.fingerprint {
		return nil, errors.New("it is sealed with another key than the one of now: give the earlier key, or remove the file and sign in again with mcsh login --all")
	}
	return key, nil
}

// fromKeyring returns the key of an entry of the keyring.
func (k *keys) fromKeyring(ctx context.Context, id string) ([]byte, error) {
	if key, ok := k.kept.Load(id); ok {
		return key.([]byte), nil
	}
	text, err := k.ring.get(ctx, entryOf(id))
	if err != nil {
		return nil, fmt.Errorf("its key is in the keyring, which does not answer: unlock the keyring, or remove the file and sign in again with mcsh login --all: %w", err)
	}
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != keySize {
		return nil, errors.New("its key is no longer in the keyring: restore the keyring, or remove the file and sign in again with mcsh login --all")
	}
	k.kept.Store(id, key)
	return key, nil
}

// choose returns the header and the key for the next content of a file. A file without logins gets no key, so that a
// lost one stops nobody. For any other the key file is used, if there is one. Otherwise the file keeps its key, or gets a new one in
// the keyring, or none.
func (k *keys) choose(ctx context.Context, now *header, empty, some bool) (header, []byte, error) {
	switch {
	case !some:
		return header{plain, "-", "-"}, nil, nil
	case k.file != "":
		key, err := readKeyFile(k.file)
		return header{inKeyFile, "-", fingerprint(key)}, key, err
	case now != nil && (now.kind != plain || !empty):
		key, err := k.of(ctx, *now)
		return *now, key, err
	}
	id, key := rand.Text(), make([]byte, keySize)
	_, _ = rand.Read(key) // it never fails
	err := k.ring.set(ctx, entryOf(id), hex.EncodeToString(key))
	if err == nil {
		var back string
		if back, err = k.ring.get(ctx, entryOf(id)); err == nil && back != hex.EncodeToString(key) {
			err = errors.New("the keyring does not keep what it is given")
		}
	}
	switch {
	case ctx.Err() != nil:
		return header{}, nil, context.Cause(ctx)
	case err != nil:
		return header{plain, "-", "-"}, nil, nil
	}
	k.kept.Store(id, key)
	return header{inKeyring, id, fingerprint(key)}, key, nil
}

// entryOf names an entry of the keyring.
func entryOf(id string) string { return "logins " + id }

// readKeyFile reads 32 bytes, as they are or in base64.
func readKeyFile(path string) ([]byte, error) {
	const how = "make one with: (umask 077; head -c 32 /dev/urandom > FILE)"
	data, err := namedfile.ReadSecret(path, 1<<20)
	if err != nil {
		return nil, fmt.Errorf("the key file cannot be read; %s: %w", how, err)
	}
	if len(data) == keySize {
		return data, nil
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(data)))
	if err != nil || len(key) != keySize {
		return nil, fmt.Errorf("the key file %s has neither 32 bytes nor 32 bytes in base64; %s", path, how)
	}
	return key, nil
}

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
