package pausing

import (
	"context"
	"time"
)

// For waits. Its error is that of ctx, if that ends first.
func For(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
