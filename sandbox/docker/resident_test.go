package docker_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
)

// waiting waits until so many workers wait for their callers.
func waiting(t *testing.T, p *sandbox.Pool, n int) {
	t.Helper()
	eventually(t, "workers that wait for their callers, as many as there should be", func() bool { return p.Load().Warm == n })
}

// TestWaitingMakesRoom: a worker that waits for its caller holds no place that a run of another one needs: its container
// goes.
func TestWaitingMakesRoom(t *testing.T) {
	o := options()
	o.Max, o.Warm = 2, -1
	p := newPool(t, o)
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
			o := options()
			o.Warm = -1
			p := newPool(t, o)
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

// TestWaitingLife: a worker that waits keeps no container longer than it may be kept.
func TestWaitingLife(t *testing.T) {
	o := options()
	o.Life, o.Warm = time.Second, -1
	p := newPool(t, o)
	works(t, p, "a")
	eventually(t, "the container is gone", func() bool { return len(ours(t)) == 0 })
	waiting(t, p, 0)
}

// TestResident: a container counts the runs of a worker that lasts, and a run that begins in it ends a worker that waits
// there where both have no room.
func TestResident(t *testing.T) {
	needEngine(t)
	o := options()
	o.Runs, o.Warm = 3, -1
	d := docker.New(o)
	defer d.Close()
	if _, err := d.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := openWorker(t, d)
	if !first.Rest() || !first.Resume() || !first.Rest() {
		t.Fatal("a worker can wait between runs of which the container has served fewer than it may")
	}
	second := openWorker(t, d) // the third run
	if _, err := io.Copy(io.Discard, first); err != nil {
		t.Errorf("reading from the worker that gave way: %v, want its end", err)
	}
	if first.Resume() {
		t.Error("a worker that gave way serves again")
	}
	if n := len(ours(t)); n != 1 {
		t.Errorf("%d containers, want one for both", n)
	}
	first.Close()
	if second.Rest() {
		t.Error("a worker waits in a container that has served enough")
	}
	second.Close()
	eventually(t, "the container is gone after 3 runs", func() bool { return len(ours(t)) == 0 })
}

type resident interface {
	io.ReadWriteCloser
	sandbox.Resident
}

func openWorker(t *testing.T, d *docker.Driver) resident {
	t.Helper()
	rwc, err := d.Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rwc.Close() })
	return rwc.(resident)
}
