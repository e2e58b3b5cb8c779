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
	cmd := &exec.Cmd{Path: argv[0], Args: argv, Dir: l.dir, Env: env, Stdout: stdout, Stderr: stderr, WaitDelay: pipeWait}
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
	return cmd.ProcessState.ExitCode(), nil
}
