package flock_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/flock"
)

// TestLock takes one lock from two sides, as two processes do.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	a, b := open(), open()
	if err := flock.Wait(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if taken, err := flock.Try(b); taken || err != nil {
		t.Errorf("a lock that another has: taken %v, %v", taken, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the time is up")
	waited := make(chan error)
	go func() { waited <- flock.Wait(ctx, b) }()
	cancel(why)
	if err := <-waited; err != why {
		t.Errorf("waiting for it ended with %v, want %v", err, why)
	}
	go func() { waited <- flock.Wait(t.Context(), b) }()
	if err := flock.Unlock(a); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Errorf("a lock that was given up: %v", err)
	}
}

// TestAcquire: the lock of a file that was removed while somebody waited for it is not taken.
func TestAcquire(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	opens := make(chan bool, 2)
	open := func() (*os.File, error) {
		opens <- true
		return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	}
	named := func() (fs.FileInfo, error) { return os.Lstat(path) }
	first, err := flock.Acquire(t.Context(), open, named)
	if err != nil {
		t.Fatal(err)
	}
	<-opens
	second := make(chan *os.File)
	go func() {
		f, err := flock.Acquire(t.Context(), open, named)
		if err != nil {
			t.Error(err)
		}
		second <- f
	}()
	<-opens // it waits for the first file
	if err := errors.Join(os.Remove(path), first.Close()); err != nil {
		t.Fatal(err)
	}
	f := <-second
	defer f.Close()
	if own, err := flock.Named(f, named); !own || err != nil {
		t.Errorf("it has the lock of another file: %v, %v", own, err)
	}
}
