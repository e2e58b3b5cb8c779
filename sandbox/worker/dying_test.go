//go:build linux

package worker

import (
	"context"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// TestSlowDeath: while an applet that was killed takes long to die, as one does that waits for a disk, a chain is ended when
// its time is up.
func TestSlowDeath(t *testing.T) {
	tooMany := wire.Budget{Processes: 1}
	for _, test := range []struct {
		name string
		kill func(w *worker, k *kept) // has the worker end the applet, and may wait for its death
	}{
		{"for its memory", nil}, // by the chain itself
		{"for its process", func(w *worker, _ *kept) {
			w.meter.enter(&process{tool: &tool{}}, tooMany)
			w.meter.makeWay(tooMany)
		}},
		{"for its key", func(w *worker, k *kept) {
			k.in.Close()
			w.idle.has(k.key)
		}},
		{"for its limits", func(w *worker, k *kept) {
			k.in.Close()
			w.idle.free(k.limits)
		}},
		{"at the end of the run", func(w *worker, k *kept) {
			k.turns = maxTurns
			w.idle.renew()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := &worker{}
			w.meter.inputs, w.meter.idle = &w.inputs, &w.idle
			k, die := immortal(t)
			w.idle.put(k)
			var killing sync.WaitGroup
			if test.kill != nil {
				killing.Go(func() { test.kill(w, k) })
				awaitKill(t, k.task.Pid())
			}
			defer func() {
				die()
				killing.Wait()
				w.idle.close()
			}()
			chain := wire.Chain{Worker: wire.Budget{Memory: 1}, Commands: []wire.Command{{Timer: time.Hour, Timeout: 200 * time.Millisecond}}}
			select {
			case o := <-outcomeOf(t, w, chain):
				if o.Failure == nil || o.Failure.Reason != wire.Timeout {
					t.Errorf("the chain ends with %+v, want %s", o.Failure, wire.Timeout)
				}
			case <-time.After(time.Minute):
				t.Error("the chain goes on")
			}
		})
	}
}

// TestComing: a program that comes while a spare is being started waits for that one.
func TestComing(t *testing.T) {
	started, released := make(chan struct{}), make(chan struct{})
	k, die := immortal(t)
	i := idlePool{start: func([]*os.File) (*kept, error) {
		close(started)
		<-released
		return k, nil
	}}
	i.spare()
	<-started
	time.AfterFunc(50*time.Millisecond, func() { close(released) })
	if got := i.free(jail.Limits{}); got != k {
		t.Errorf("got %p, want the spare %p", got, k)
	}
	i.discard(k)
	die()
	i.close()
}

// immortal returns an applet whose death is not seen before die is called.
func immortal(t *testing.T) (k *kept, die func()) {
	t.Helper()
	cell, err := jail.NewCell(jail.Spec{
		Path: "/usr/bin/cat", Read: libraries, Run: []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"},
	})
	if err != nil {
		t.Skipf("no process can be jailed here: %v", err)
	}
	defer cell.Close()
	all, err := pipes(3, pipeSize)
	if err != nil {
		t.Fatal(err)
	}
	p, err := cell.Start(jail.Command{Argv: []string{"cat"}, Files: all.descriptors()})
	if err != nil {
		t.Fatal(err)
	}
	all.closeTheirs()
	attended := &task{Process: p, stderr: new(stderr), done: make(chan struct{})}
	k = &kept{key: "a program", task: attended, in: all[0].ours, out: all[1].ours}
	return k, func() { attended.collect(all[2].ours) }
}

// awaitKill returns when a child is a zombie.
func awaitKill(t *testing.T, pid int) {
	t.Helper()
	for err := error(unix.EINTR); err != nil; {
		if err = unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil && err != unix.EINTR {
			t.Fatal(err)
		}
	}
}

// outcomeOf runs a chain in a worker, with input that has ended.
func outcomeOf(t *testing.T, w *worker, chain wire.Chain) <-chan wire.Outcome {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() { _ = wire.Serve(context.Background(), theirs, wire.Hello{}, wire.Host{Run: w.run}) }()
	client, err := wire.Dial(t.Context(), ours)
	if err != nil {
		t.Fatal(err)
	}
	id, err := wire.Prepare(chain)
	if err != nil {
		t.Fatal(err)
	}
	s, err := client.Run(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.End(); err != nil {
		t.Fatal(err)
	}
	came := make(chan wire.Outcome, 1)
	go func() {
		defer client.Close()
		o, err := s.Outcome()
		if err != nil {
			t.Error(err)
		}
		came <- o
	}()
	return came
}
