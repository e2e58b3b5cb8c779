//go:build linux

package worker

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// environment is all that a program sees, but for TMPDIR where its table entry asks for it.
var environment = []string{"LC_ALL=C.UTF-8", "PATH=/usr/bin", "TZ=UTC"}

// helperEnvironment is for the Go runtime of the helper, which lives a millisecond.
var helperEnvironment = []string{"GOGC=off", "GOMAXPROCS=1"}

// appletEnvironment keeps the Go runtime from describing itself when memory runs out. Applets do not see it.
var appletEnvironment = append(slices.Clone(environment), "GOTRACEBACK=none")

// cpuGrace is what the processor time of a command may exceed its timeout by: the clock ends it first, this is for a
// worker that cannot.
const cpuGrace = time.Second

// A process is one running command of a chain: a jailed program, an applet or a timer.
type process struct {
	index   int
	tool    *tool // nil for a timer
	cmd     *exec.Cmd
	stderr  stderr
	scratch string
	started time.Time
	elapsed time.Duration
	err     error // of Wait

	release chan struct{} // ends a timer early; closed by kill
	killed  bool          // by this worker
	exited  bool
}

// command builds how p is started. It returns an error that says why it is not.
func (w *worker) command(p *process, c wire.Command, chain wire.Chain) error {
	limits := jail.Limits{CPU: c.Timeout + cpuGrace, Data: uint64(chain.Memory), File: uint64(chain.Disk)}
	var spec any
	role, argv := roleApplet, c.Argv
	if p.tool.Applet != nil {
		spec = appletSpec{p.tool.Name, limits, w.pid}
		argv = argv[1:]
	} else {
		if err := p.tool.readELF(); err != nil {
			return err
		}
		s := jail.Spec{
			Path: p.tool.file, Env: environment, Limits: limits, Parent: w.pid,
			Read: p.tool.reads(), Scratch: p.scratch,
		}
		if p.tool.loader != "" {
			s.Run = []string{p.tool.loader}
		}
		if p.tool.TempEnv {
			s.Env = append(slices.Clone(environment), "TMPDIR="+p.scratch)
		}
		role, argv, spec = roleJail, inScratch(argv, p.scratch), s
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	p.cmd = w.self(role, string(text), argv)
	p.cmd.Stderr = &p.stderr
	if role == roleApplet {
		p.cmd.Env = appletEnvironment
	}
	return nil
}

// self starts this binary again, in another role.
func (w *worker) self(role, spec string, argv []string) *exec.Cmd {
	return &exec.Cmd{
		Path: "/proc/self/exe",
		Args: slices.Concat([]string{"mcsh-worker"}, w.prefix, []string{role, spec}, argv),
		Env:  helperEnvironment,
		Dir:  "/",
		SysProcAttr: &syscall.SysProcAttr{
			Setpgid:   true,
			Pdeathsig: syscall.SIGKILL,
		},
	}
}

// inScratch puts the directory where arguments ask for one.
func inScratch(argv []string, dir string) []string {
	out := slices.Clone(argv)
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], programs.ScratchDir, dir)
	}
	return out
}

// start starts the command with the two ends of its pipes, which are closed here.
func (p *process) start(stdin, stdout *os.File, timer time.Duration, exits chan<- *process) error {
	p.started = time.Now()
	if p.tool == nil {
		go p.sleep(timer, stdin, stdout, exits)
		return nil
	}
	defer stdin.Close()
	defer stdout.Close()
	p.cmd.Stdin, p.cmd.Stdout = stdin, stdout
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.tool.Name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		exits <- p
	}()
	return nil
}

// sleep is a process that reads nothing, writes nothing and ends after a while. As in a shell, the command before it
// can fill the pipe meanwhile, and no more.
func (p *process) sleep(d time.Duration, stdin, stdout *os.File, exits chan<- *process) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.release:
	}
	stdin.Close()
	stdout.Close()
	exits <- p
}

// kill ends the process. The jail lets it start no other, so that there is no group to kill, whose number might belong
// to somebody else by now. It is for the chain's own goroutine.
func (p *process) kill() {
	if p.killed || p.exited {
		return
	}
	p.killed = true
	if p.tool == nil {
		close(p.release)
		return
	}
	_ = p.cmd.Process.Kill() // it has exited already, or it is dead now
}

// cpu returns the processor time that an ended process has used.
func (p *process) cpu() time.Duration {
	if p.cmd == nil || p.cmd.ProcessState == nil {
		return 0
	}
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}
