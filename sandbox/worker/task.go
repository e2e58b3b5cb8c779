//go:build linux

package worker

import (
	"io"
	"os"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
)

// A task is a process that has been started, with what it says on standard error.
type task struct {
	*jail.Process
	in, out *os.File // our ends of its standard input and output
	stderr  *stderr  // to be read after done
	done    chan struct{}
	state   jail.State // to be read after done
	err     error      // of waiting for it; likewise
}

// connect starts a process with pipes.
func connect(start func(jail.Command) (*jail.Process, error), c jail.Command) (*task, error) {
	all, err := pipes(3, pipeSize)
	if err != nil {
		return nil, err
	}
	defer all.closeTheirs()
	c.Files = append(all.descriptors(), c.Files...)
	p, err := start(c)
	if err != nil {
		all.closeOurs()
		return nil, err
	}
	t := &task{Process: p, in: all[0].ours, out: all[1].ours, stderr: new(stderr), done: make(chan struct{})}
	go t.collect(all[2].ours)
	return t, nil
}

// saidBuffer is small, as most processes say nothing.
const saidBuffer = 4 << 10

// collect reads standard error to its end, and notes how the process ended. It can start no other that would hold the pipe.
func (t *task) collect(said *os.File) {
	defer close(t.done)
	_, _ = io.CopyBuffer(t.stderr, onlyReader{said}, make([]byte, saidBuffer)) // unreadable output is lost
	said.Close()
	t.state, t.err = t.Wait()
}

// A pipe is one with a process: one end is ours, the other is for the process.
type pipe struct{ ours, theirs *os.File }

type pipeSet []pipe

// pipeSize is what a pipe for data holds where the system allows it. With more than the usual 64 KiB the two ends take
// turns less often.
const pipeSize = 256 << 10

// pipes makes the pipes for the first n of standard input, output and error. The two for data hold so many bytes.
func pipes(n, size int) (all pipeSet, err error) {
	for i := range n {
		r, w, err := os.Pipe()
		if err != nil {
			all.closeOurs()
			all.closeTheirs()
			return nil, err
		}
		if i < 2 {
			widen(w, size)
		}
		if i == 0 {
			r, w = w, r
		}
		all = append(all, pipe{ours: r, theirs: w})
	}
	return all, nil
}

// descriptors are those of the ends that a process is to have. It may not know what to do with one that does not block,
// which they do from now on.
func (s pipeSet) descriptors() (all []int) {
	for _, p := range s {
		all = append(all, int(p.theirs.Fd()))
	}
	return all
}

func (s pipeSet) closeOurs() {
	for _, p := range s {
		p.ours.Close()
	}
}

func (s pipeSet) closeTheirs() {
	for _, p := range s {
		p.theirs.Close()
	}
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close()
	}
}
