package store

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// Errors of a store, to be tested with errors.Is.
var (
	ErrExists   = errors.New("there is an object of that name")
	ErrNotFound = errors.New("there is no object of that name")
)

// A Store keeps objects under names such as "runs/r_1/0": parts of letters, digits, "_", "-" and ".", between slashes, at most
// 512 bytes, a part at most 255, no part "." or "..". No object may have the name of a folder of another one: beside
// "runs/r_1/0" there is no "runs/r_1", which a directory cannot hold. Its methods may be called concurrently, and end when
// their context does; that of Get ends the reading, too. Other errors than those above say what failed where.
type Store interface {
	// Put writes an object of size bytes, whole or not at all. If somebody else has written one of that name, it is left as it
	// is and the error is ErrExists. After an error of data, which has to have exactly size bytes, there is no object. After
	// another error nobody knows: the answer of the store may have been lost. Put does not read data after its return.
	Put(ctx context.Context, name string, data io.Reader, size int64) error

	// Get reads up to length bytes of an object from offset on; all the rest if length is negative. The error is ErrNotFound
	// if there is no such object. What is read is what was written, or reading fails. Beyond the end nothing is read.
	Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)

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
