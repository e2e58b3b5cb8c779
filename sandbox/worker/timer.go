//go:build linux

package worker

import "time"

// sleep makes p a command that reads nothing, writes nothing and ends after a while. As in a shell, the command before it
// can fill the pipe meanwhile, and no more.
func (p *process) sleep(d time.Duration, exits chan<- *process) (ends, error) {
	all, err := pipes(2, pipeSize)
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
		all.closeTheirs()
		exits <- p
	}()
	return ends{in: all[0].ours, stdin: all[0].ours, out: all[1].ours}, nil
}
