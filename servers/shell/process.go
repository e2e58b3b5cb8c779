package shell

import (
	"context"
	"io"
	"os/exec"
	"syscall"
	"time"

	"github.com/mcsh-dev/mcsh/internal/procgroup"
)

// pipeWait is how long the output of a command line is read after its end: a process that left its group can hold it open.
const pipeWait = 5 * time.Second

// local runs programs on this machine, in process groups of their own.
type local struct{ dir string }

// Run implements [Runner]. It does not wait for processes that leave the group, nor end them.
func (l local) Run(ctx context.Context, argv, env []string, stdout, stderr io.Writer) (int, error) {
	if ctx.Err() != nil {
		return -1, context.Cause(ctx)
	}
	out, errs := &drain{to: stdout}, &drain{to: stderr}
	cmd := &exec.Cmd{Path: argv[0], Args: argv, Dir: l.dir, Env: env, Stdout: out, WaitDelay: pipeWait}
	if stderr != nil {
		cmd.Stderr = errs
	}
	group, err := procgroup.Start(cmd)
	if err != nil {
		return -1, err
	}
	killed := false
	select {
	case <-group.Done():
	case <-ctx.Done():
		killed = group.Signal(syscall.SIGKILL)
		<-group.Done()
	}
	if killed {
		return -1, context.Cause(ctx)
	}
	if out.cut || errs.cut {
		return cmd.ProcessState.ExitCode(), ErrCut
	}
	return cmd.ProcessState.ExitCode(), nil
}

// Close implements [Runner].
func (local) Close() error { return nil }

// A drain passes on the output of a program, and notes whether its end was not reached: [exec.Cmd] says that only of programs that
// succeed.
type drain struct {
	to  io.Writer
	cut bool
}

// Write implements [io.Writer].
func (d *drain) Write(p []byte) (int, error) { return d.to.Write(p) }

// ReadFrom implements [io.ReaderFrom], which [exec.Cmd] uses.
func (d *drain) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(struct{ io.Writer }{d.to}, r)
	d.cut = err != nil
	return n, err
}
