//go:build linux

package worker

import (
	"bytes"
	"io"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// A part is a command that passes on a stretch of its input. The pump before it writes to it, the one behind it reads
// what comes out; it is neither process nor goroutine. Write is for one caller at a time.
type part struct {
	wire.Part
	p      *process
	out    *io.PipeWriter
	linger time.Duration
	spare  int    // bytes that it still takes after its end, for nothing
	exit   func() // may be called more than once
}

// An applet that lasts is worth more than the moment in which it may end by itself, where its output has no reader any more:
// it would have to be killed.
const (
	lingering  = 5 * time.Millisecond
	spareBytes = 256 << 10
)

// linger returns how long command i waits for those before it when it has ended.
func (r *run) linger(i int) time.Duration {
	for _, before := range r.processes[:i] {
		if before.kept != nil {
			return lingering
		}
	}
	return 0
}

// pass makes p a command that passes on a part of its input.
func (p *process) pass(which wire.Part, linger time.Duration, exits chan<- *process) ends {
	r, w := io.Pipe()
	t := &part{Part: which, p: p, out: w, linger: linger, spare: spareBytes}
	t.exit = sync.OnceFunc(func() {
		w.Close()
		exits <- p
	})
	p.cancel = t.exit
	if t.Take == 0 {
		t.end()
	}
	return ends{in: t, out: r}
}

// Write takes what the command before has written.
func (t *part) Write(data []byte) (int, error) {
	if t.Take == 0 {
		return t.discard(data)
	}
	n := t.count(&t.Skip, data)
	rest := data[n:]
	if rest = rest[:t.count(&t.Take, rest)]; len(rest) > 0 {
		if passed, err := t.out.Write(rest); err != nil {
			return n + passed, err
		}
	}
	if t.Take == 0 {
		return len(data), t.end()
	}
	return len(data), nil
}

// count returns how many bytes of data belong to the next lines or bytes, and counts those down.
func (t *part) count(left *int64, data []byte) (n int) {
	switch {
	case *left < 0:
		return len(data)
	case t.Bytes:
		n = int(min(int64(len(data)), *left))
		*left -= int64(n)
		return n
	}
	mark := byte('\n')
	if t.Zero {
		mark = 0
	}
	for *left > 0 && n < len(data) {
		i := bytes.IndexByte(data[n:], mark)
		if i < 0 {
			return len(data)
		}
		n += i + 1
		*left--
	}
	return n
}

// end is the end of the part, but not always of the input. The error is for the writer.
func (t *part) end() error {
	t.p.enough.Store(true)
	t.out.Close()
	if t.linger > 0 {
		time.AfterFunc(t.linger, t.exit)
		return nil
	}
	t.exit()
	return io.ErrClosedPipe
}

func (t *part) discard(data []byte) (int, error) {
	if t.spare -= len(data); t.linger > 0 && t.spare >= 0 {
		return len(data), nil
	}
	t.exit()
	return 0, io.ErrClosedPipe
}

// Close is the end of the input.
func (t *part) Close() error {
	t.exit()
	return nil
}

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
