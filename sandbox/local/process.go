//go:build linux

package local

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/sandbox"
)

const (
	pipeSize  = 1 << 20 // of the pipes to a worker, where the system allows it: fewer wake-ups
	exitGrace = time.Second
)

// A process is one worker.
type process struct {
	cmd     *exec.Cmd
	in, out *os.File // the worker's standard input and output
	scratch *claim
	said    sandbox.Said
	exited  chan struct{} // closed when the worker is dead and its scratch directory removed
	gone    func(*process)
	once    sync.Once
}

// start starts the worker with empty environment, in /, with three descriptors.
func (p *process) start(s *starter, argv []string) error {
	childIn, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer childIn.Close()
	out, childOut, err := os.Pipe()
	if err != nil {
		in.Close()
		return err
	}
	defer childOut.Close()
	p.in, p.out = in, out
	widen(in)
	widen(out)
	p.cmd = &exec.Cmd{
		Path: argv[0], Args: slices.Concat(argv, []string{"-scratch", p.scratch.dir}),
		Env: []string{}, Dir: "/",
		Stdin: childIn, Stdout: childOut, Stderr: &p.said,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM},
		WaitDelay:   exitGrace,
	}
	if err := s.start(p.cmd); err != nil {
		in.Close()
		out.Close()
		return err
	}
	go p.wait()
	return nil
}

// wait cleans up after the worker.
func (p *process) wait() {
	_ = p.cmd.Wait() // how it ended shows in Read
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
		kill := time.AfterFunc(exitGrace, func() { _ = p.cmd.Process.Kill() })
		defer kill.Stop()
		_, _ = io.Copy(io.Discard, p.out)
		<-p.exited
		p.out.Close()
	})
	<-p.exited
	return nil
}
