//go:build linux

package local

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/worker"
)

const (
	exitGrace = time.Second
	deadGrace = 3 * time.Second // for a worker that was killed: one that waits for a disk does not die
)

// A process is one worker.
type process struct {
	worker  *jail.Process
	in, out *os.File // the worker's standard input and output
	err     *os.File // its standard error
	scratch *claim
	said    sandbox.StderrHead
	exited  chan struct{} // closed when the worker is dead and its scratch directory removed
	gone    func(*process)
	once    sync.Once
}

// start starts the worker.
func (p *process) start(workers *worker.Launcher) (err error) {
	var said *os.File
	if p.err, said, err = os.Pipe(); err != nil {
		return err
	}
	defer said.Close()
	if p.worker, p.in, p.out, err = workers.Start(p.scratch.dir, said); err != nil {
		p.err.Close()
		return err
	}
	go p.wait()
	return nil
}

// wait reads the standard error of the worker, which no other process has, to its end, and cleans up after the worker.
func (p *process) wait() {
	_, _ = io.Copy(&p.said, p.err) // unreadable output is lost
	p.err.Close()
	_, _ = p.worker.Wait() // how it ended shows in Read
	p.scratch.release()
	p.gone(p)
	close(p.exited)
}

// Read returns what the worker says. When it has exited with words on standard error, they are the error.
func (p *process) Read(b []byte) (int, error) {
	n, err := p.out.Read(b)
	if err == io.EOF {
		select {
		case <-p.exited:
		case <-time.After(exitGrace): // it has closed its output and lives on
		}
		if said := p.said.String(); said != "" {
			err = fmt.Errorf("the worker said %q and exited", said)
		}
	}
	return n, err
}

func (p *process) Write(b []byte) (int, error) { return p.in.Write(b) }

// Replace implements [sandbox.Worker]: nothing is left of a worker that another one could be in.
func (p *process) Replace() sandbox.Worker { return nil }

// Close ends the worker: the end of its input tells it to, and it is killed if it does not. Its output is drained
// meanwhile, so that it cannot wait for a reader. When Close returns the worker is dead, or is given up.
func (p *process) Close() error {
	p.once.Do(func() {
		p.in.Close()
		kill := time.AfterFunc(exitGrace, p.worker.Kill)
		defer kill.Stop()
		late := time.NewTimer(exitGrace + deadGrace)
		defer late.Stop()
		_ = p.out.SetReadDeadline(time.Now().Add(exitGrace + deadGrace)) // a pipe has deadlines
		_, _ = io.Copy(io.Discard, p.out)
		select {
		case <-p.exited:
		case <-late.C:
		}
		p.out.Close()
	})
	return nil
}
