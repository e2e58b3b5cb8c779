//go:build linux

package worker

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
)

// A task is a process that has been started, with what it says on standard error.
type task struct {
	*jail.Process
	stderr *stderr // to be read after done
	done   chan struct{}
	state  jail.State // to be read after done
	err    error      // of waiting for it; likewise
}

// A recipe is how a process is started: in a jail, or as an applet, which locks itself in.
type recipe struct {
	cell    *jail.Cell // nil for an applet
	private bool       // the cell is for this process alone
	command jail.Command

	applets *applets
	spec    appletSpec
	inputs  []*os.File // descriptors of an applet after standard error
}

// A wired task is one with our ends of its standard input and output.
type wired struct {
	*task
	in, out *os.File
}

// start starts a process. The recipe is used up.
func (r *recipe) start() (wired, error) {
	defer r.drop()
	if r.cell != nil {
		return connect(r.cell.Start, r.command)
	}
	return r.applets.hire(r)
}

// connect starts a process with pipes.
func connect(start func(jail.Command) (*jail.Process, error), c jail.Command) (w wired, err error) {
	in, out, err := pipes()
	if err != nil {
		return w, err
	}
	defer unix.Close(in.theirs)
	defer unix.Close(out.theirs)
	said, err := pipeFrom()
	if err != nil {
		closeAll(in.ours, out.ours)
		return w, err
	}
	defer unix.Close(said.theirs)
	c.Files = append([]int{in.theirs, out.theirs, said.theirs}, c.Files...)
	p, err := start(c)
	if err != nil {
		closeAll(in.ours, out.ours, said.ours)
		return w, err
	}
	t := &task{Process: p, stderr: new(stderr), done: make(chan struct{})}
	go t.attend(said.ours)
	return wired{t, in.ours, out.ours}, nil
}

// drop gives up what the recipe holds.
func (r *recipe) drop() {
	closeAll(r.inputs...)
	r.inputs = nil
	if r.private && r.cell != nil {
		r.cell.Close()
	}
}

// saidBuffer is small, as most processes say nothing.
const saidBuffer = 4 << 10

// attend hears the process out, and takes note of its end. It can start no other that would hold the pipe.
func (t *task) attend(said *os.File) {
	defer close(t.done)
	_, _ = io.CopyBuffer(t.stderr, onlyReader{said}, make([]byte, saidBuffer)) // what cannot be read is not said
	said.Close()
	t.state, t.err = t.Wait()
}

// A pipe is one with a process: one end is ours, the other a bare descriptor that the process is to have.
type pipe struct {
	ours   *os.File
	theirs int
}

// pipeFrom makes a pipe that a process writes, pipeTo one that it reads.
func pipeFrom() (pipe, error) { return newPipe(0) }
func pipeTo() (pipe, error)   { return newPipe(1) }

func newPipe(ours int) (pipe, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return pipe{}, os.NewSyscallError("pipe2", err)
	}
	// Only our end: the process may not know what to do with one that does not block.
	if err := unix.SetNonblock(fds[ours], true); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return pipe{}, os.NewSyscallError("fcntl", err)
	}
	return pipe{ours: os.NewFile(uintptr(fds[ours]), "|"), theirs: fds[1-ours]}, nil
}

// pipeSize is what a pipe for data holds where the system allows it. More than the usual 64 KiB lets the two ends take
// turns less often.
const pipeSize = 256 << 10

// pipes makes the two pipes for a process's standard input and output.
func pipes() (in, out pipe, err error) {
	if in, err = pipeTo(); err != nil {
		return in, out, err
	}
	if out, err = pipeFrom(); err != nil {
		in.close()
		return in, out, err
	}
	for _, fd := range []int{in.theirs, out.theirs} {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, pipeSize)
	}
	return in, out, nil
}

func (p pipe) close() {
	p.ours.Close()
	unix.Close(p.theirs)
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close()
	}
}
