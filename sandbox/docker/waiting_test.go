package docker_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/mcsh-dev/mcsh/sandbox"
)

// waiting waits until so many workers wait for their callers.
func waiting(t *testing.T, p *sandbox.Pool, n int) {
	t.Helper()
	eventually(t, "workers that wait for their callers, as many as there should be", func() bool { return p.Load().Warm == n })
}

// TestWaitingMakesRoom: a worker that waits for its caller holds no place that a run of another one needs: its container
// goes.
func TestWaitingMakesRoom(t *testing.T) {
	p := newPoolOf(t, options(), sandbox.Options{Max: 2, Warm: -1, Lasting: true})
	works(t, p, "a")
	first := slices.Collect(maps.Keys(boxes(t)))
	works(t, p, "b")
	waiting(t, p, 2)
	works(t, p, "c")
	if len(first) != 1 {
		t.Fatalf("the containers %v, want that of the probe for the first caller", first)
	}
	eventually(t, "the container of the caller who has been away longest is gone", func() bool { return !exists(t, first[0]) })
	waiting(t, p, 2)
	works(t, p, "a")
	eventually(t, "there are no more containers than there may be runs", func() bool { return len(ours(t)) <= 2 })
	waiting(t, p, 2)
}

// TestWaitingLost: a worker that waits for its caller ends with its container, and whatever has become of it the next run
// of the caller is served.
func TestWaitingLost(t *testing.T) {
	for _, test := range []struct {
		name    string
		happens func(ctx context.Context, id string) error
		gone    bool // the worker is known to be
	}{
		{"killed", func(ctx context.Context, id string) error { return api.ContainerKill(ctx, id, "KILL") }, true},
		{"removed", func(ctx context.Context, id string) error {
			return api.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
		}, true},
		{"frozen", func(ctx context.Context, id string) error { return api.ContainerPause(ctx, id) }, false},
		{"thawed", func(ctx context.Context, id string) error {
			return errors.Join(api.ContainerPause(ctx, id), api.ContainerUnpause(ctx, id))
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPoolOf(t, options(), cold)
			works(t, p, "a")
			waiting(t, p, 1)
			for id := range boxes(t) {
				if err := test.happens(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
			if test.gone {
				waiting(t, p, 0)
			}
			works(t, p, "a")
			waiting(t, p, 1)
		})
	}
}
