// Package flock locks files against other processes. A lock ends with its process, however that ends, and belongs to the
// open file: closing it gives it up.
package flock

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
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
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
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
