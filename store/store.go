package store

import (
	"context"
	"errors"
	"iter"
	"time"
)

// MaxObject is the most bytes of an object. A store that is not sealed has room for a seal beyond that.
const MaxObject = 8 << 20

// Errors of a store, to be tested with errors.Is.
var (
	ErrExists   = errors.New("there is an object of that name")
	ErrNotFound = errors.New("there is no object of that name")
	ErrDamaged  = errors.New("it is not as it was written")
	ErrKey      = errors.New("it is sealed with a key that this gateway does not have")
)

// A Store keeps objects under names such as "runs/1f/0": parts of letters, digits, "_", "-" and ".", between slashes, at most
// 512 bytes, a part at most 255, no part "." or "..". No object may have the name of a folder of another one: beside
// "runs/1f/0" there is no "runs/1f", which a directory cannot hold. Its methods may be called concurrently, and end when
// their context does. Other errors than those above say what failed where.
type Store interface {
	// Put writes an object of at most [MaxObject] bytes, whole or not at all. If somebody else has written one of that name, it
	// is left as it is and the error is ErrExists. After another error nobody knows whether there is an object: the answer of
	// the store may have been lost.
	Put(ctx context.Context, name string, data []byte) error

	// Get reads an object: as it was written, or not at all. The error is ErrNotFound if there is none, ErrDamaged if it is
	// longer than objects are, or a seal shows that it was changed, and ErrKey if it is sealed with an unknown key.
	Get(ctx context.Context, name string) ([]byte, error)

	// List returns the objects whose names begin with prefix, in the order of their names.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]

	// Delete removes an object. It is no error if there is none.
	Delete(ctx context.Context, name string) error
}

// An Object is a row of a list.
type Object struct {
	Name     string
	Size     int64     // bytes of its data
	Modified time.Time // by the clock of the store
}
