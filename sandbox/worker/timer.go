//go:build linux

package worker

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleep makes p a command that reads nothing, writes nothing and ends after a while. As in a shell, the command before it
// can fill the pipe meanwhile, and no more.
func (p *process) sleep(d time.Duration, exits chan<- *process) (ends, error) {
	in, out, err := pipes()
	if err != nil {
		return ends{}, err
	}
	cancelled := make(chan struct{})
	p.cancel = func() { close(cancelled) } // once: see kill
	go func() {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-cancelled:
		}
		unix.Close(in.theirs)
		unix.Close(out.theirs)
		exits <- p
	}()
	return ends{in: in.ours, stdin: in.ours, out: out.ours}, nil
}
