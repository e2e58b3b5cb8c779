//go:build linux

package local

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/worker"
)

const (
	pipeSize  = 1 << 20 // of the pipes to a worker, where the system allows it: fewer wake-ups
	exitGrace = time.Second
)

// A process is one worker.
type process struct {
	worker  *jail.Process
	in, out *os.File // the worker's standard input and output
	err     *os.File // its standard error
	scratch *claim
	said    sandbox.Said
	exited  chan struct{} // closed when the worker is dead and its scratch directory removed
	gone    func(*process)
	once    sync.Once
}

// start starts the worker with three descriptors.
func (p *process) start(s *starter, workers *worker.Launcher) (err error) {
	var theirs [3]*os.File
	defer func() {
		for _, f := range theirs {
			f.Close() // nil is an error that does no harm
		}
		if err != nil {
			p.in.Close()
			p.out.Close()
			p.err.Close()
		}
	}()
	if theirs[0], p.in, err = os.Pipe(); err != nil {
		return err
	}
	if p.out, theirs[1], err = os.Pipe(); err != nil {
		return err
	}
	if p.err, theirs[2], err = os.Pipe(); err != nil {
		return err
	}
	widen(p.in)
	widen(p.out)
	files := [3]int{int(theirs[0].Fd()), int(theirs[1].Fd()), int(theirs[2].Fd())}
	if p.worker, err = s.start(workers, p.scratch.dir, files); err != nil {
		return err
	}
	go p.wait()
	return nil
}

// wait hears the worker out, which gives its standard error to nobody, and cleans up after it.
func (p *process) wait() {
	_, _ = io.Copy(&p.said, p.err) // what cannot be read is not said
	p.err.Close()
	_, _ = p.worker.Wait() // how it ended shows in Read
	p.scratch.release()
	p.gone(p)
	close(p.exited)
}

func widen(f *os.File) {
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
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

// Close ends the worker: the end of its input tells it to, and it is killed if it does not. Its output is drained
// meanwhile, so that it cannot wait for a reader.
func (p *process) Close() error {
	p.once.Do(func() {
		p.in.Close()
		kill := time.AfterFunc(exitGrace, p.worker.Kill)
		defer kill.Stop()
		_, _ = io.Copy(io.Discard, p.out)
		<-p.exited
		p.out.Close()
	})
	<-p.exited
	return nil
}
