package ui

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"
)

// Bounds of sign-ins.
const (
	maxSessions       = 1000 // of a console
	maxPersonSessions = 16   // of one identity; a new one ends the oldest
	maxBegun          = 256  // sign-ins at an issuer that have begun; a new one ends the oldest
	maxNext           = 2000 // bytes of the address that a sign-in leads to
	entryCost         = 2048 // bytes that a sign-in takes beside its texts
	begunWait         = 10 * time.Minute
)

// A session is the sign-in of a person in a browser. The browser has a random word, and the token stays here: a logout really
// ends it, and nobody reads a token from a browser.
type session struct {
	token  string
	person string // the identity
}

// A begun sign-in waits for the browser that has begun it to come back from the issuer.
type begun struct {
	signIn SignIn
	next   string // the page that was asked for
}

// A Memory is a part of a budget, in bytes.
type Memory interface {
	Try(n int64) bool // takes some; false: they are not free
	Give(n int64)     // gives some back
}

// A table keeps values under the hashes of random words, so that the memory of the process has none of the words.
type table[V any] struct {
	memory Memory      // that the values take; nil: nobody counts
	size   func(V) int // of the texts of a value

	mu  sync.Mutex
	all map[[sha256.Size]byte]entry[V] // guarded by mu
}

type entry[V any] struct {
	value V
	made  time.Time
}

func newTable[V any](memory Memory, size func(V) int) *table[V] {
	return &table[V]{memory: memory, size: size, all: map[[sha256.Size]byte]entry[V]{}}
}

// cost is the memory that a value takes.
func (t *table[V]) cost(v V) int64 { return int64(entryCost + t.size(v)) }

// A bound is the most values that may count.
type bound[V any] struct {
	most   int
	counts func(V) bool
}

// add adds a value and returns its word. If a bound is reached, it first removes the oldest value that counts. fits is false
// if there is no memory for the value.
func (t *table[V]) add(v V, bounds ...bound[V]) (word string, fits bool) {
	word = rand.Text()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range bounds {
		if old, full := t.oldest(b); full {
			t.drop(old)
		}
	}
	if t.memory != nil && !t.memory.Try(t.cost(v)) {
		return "", false
	}
	t.all[sha256.Sum256([]byte(word))] = entry[V]{v, time.Now()}
	return word, true
}

// drop removes a value. t.mu is held.
func (t *table[V]) drop(key [sha256.Size]byte) {
	e, found := t.all[key]
	if !found {
		return
	}
	delete(t.all, key)
	if t.memory != nil {
		t.memory.Give(t.cost(e.value))
	}
}

// oldest returns the key of the oldest value that counts, and whether as many count as may. t.mu is held.
func (t *table[V]) oldest(b bound[V]) (key [sha256.Size]byte, full bool) {
	count, first := 0, time.Time{}
	for k, e := range t.all {
		if !b.counts(e.value) {
			continue
		}
		if count++; first.IsZero() || e.made.Before(first) {
			key, first = k, e.made
		}
	}
	return key, count >= b.most
}

// get returns the value of a word, and when it was added.
func (t *table[V]) get(word string) (v V, made time.Time, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, found := t.all[sha256.Sum256([]byte(word))]
	return e.value, e.made, found
}

func (t *table[V]) remove(word string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(sha256.Sum256([]byte(word)))
}
