// Package flock locks files against other processes. A lock ends with its process, however that ends, and belongs to the
// open file: closing it gives it up.
package flock

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/mcsh-dev/mcsh/internal/pausing"
)

// Waits between two looks at a lock that another has: they double.
const (
	firstPause = time.Millisecond
	maxPause   = 50 * time.Millisecond
)

// Wait takes the lock of f, and waits for it no longer than ctx, whose cause is the error then.
func Wait(ctx context.Context, f *os.File) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		if taken, err := Try(f); taken || err != nil {
			return err
		}
		if pausing.For(ctx, pause) != nil {
			return context.Cause(ctx)
		}
	}
}

// Acquire opens a lock file and takes its lock, as [Wait] does. named describes the file that has the name of the lock: one that
// others have removed meanwhile is the lock of nobody, and Acquire opens another one.
func Acquire(ctx context.Context, open func() (*os.File, error), named func() (fs.FileInfo, error)) (*os.File, error) {
	for {
		f, err := open()
		if err != nil {
			return nil, err
		}
		own := false
		if err = Wait(ctx, f); err == nil {
			own, err = Named(f, named)
		}
		if own {
			return f, nil
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
}

// Named reports whether an open file is the one that named describes. A name without a file is that of another one.
func Named(f *os.File, named func() (fs.FileInfo, error)) (bool, error) {
	there, err := named()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	info, err := f.Stat()
	return err == nil && os.SameFile(info, there), err
}

// Try takes the lock of f if nobody else has it, and says whether.
func Try(f *os.File) (bool, error) {
	err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// Unlock gives up the lock of a file that stays open.
func Unlock(f *os.File) error { return flock(f, syscall.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
