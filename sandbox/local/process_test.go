//go:build linux

package local

import (
	"os"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
)

// TestCloseSlowDeath: a worker that was killed and does not die, as one does not that waits for a disk, is given up, and so
// is what was to come from it.
func TestCloseSlowDeath(t *testing.T) {
	cell, err := jail.NewCell(jail.Spec{
		Path: "/usr/bin/cat", Read: []string{"/usr/lib", "/lib", "/lib64", "/usr/lib64", "/etc/ld.so.cache"},
		Run: []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"},
	})
	if err != nil {
		t.Skipf("no process can be jailed here: %v", err)
	}
	defer cell.Close()
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer theirIn.Close()
	out, theirOut, err := os.Pipe() // which stays open, as that of a process does that lives
	if err != nil {
		t.Fatal(err)
	}
	defer theirOut.Close()
	started, err := cell.Start(jail.Command{Argv: []string{"cat"}, Files: []int{int(theirIn.Fd()), int(theirOut.Fd()), int(theirOut.Fd())}})
	if err != nil {
		t.Fatal(err)
	}
	p := &process{worker: started, in: in, out: out, exited: make(chan struct{})} // nothing waits for its end
	read := make(chan error, 1)
	go func() {
		_, err := p.Read(make([]byte, 1))
		read <- err
	}()
	closed := make(chan error, 1)
	go func() { closed <- p.Close() }()
	for what, done := range map[string]chan error{"Close": closed, "Read": read} {
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Errorf("%s waits for the worker's death", what)
		}
	}
	if _, err := started.Wait(); err != nil {
		t.Error(err)
	}
}
