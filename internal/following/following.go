// Package following notices changes of files by reading them again and again: editors, Kubernetes and checkouts each replace files
// in their own way, and network file systems report nothing. It knows nothing of what the files hold.
package following

import (
	"context"
	"time"

	"github.com/mcsh-dev/mcsh/internal/pausing"
)

const (
	pollEvery = 500 * time.Millisecond
	stableFor = 200 * time.Millisecond // without a change, so that no file is read half written
)

// Watch calls changed whenever what now returns differs from last and has stayed the same for a moment, until ctx is done. last
// returns what was read last, and changed reads it again.
func Watch[S any](ctx context.Context, last, now func() S, equal func(a, b S) bool, changed func()) {
	for pausing.For(ctx, pollEvery) == nil {
		read := last()
		for before := now(); !equal(before, read) && pausing.For(ctx, stableFor) == nil; {
			again := now()
			if equal(again, before) {
				changed()
				break
			}
			before = again
		}
	}
}
