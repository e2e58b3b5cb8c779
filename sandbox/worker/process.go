//go:build linux

package worker

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
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
	inputs  string // the directory of its named inputs, empty if it has none
	started time.Time
	kills   int64 // of the kernel for want of memory, at the start
	limit   int64 // bytes of private memory
	elapsed time.Duration
	err     error // of Wait

	// Of an applet that is kept for further items.
	key    string // what it can be used for; empty if it is not kept
	kept   *kept  // once it is there
	served bool   // it has run to its end, with this status
	status int
	before time.Duration // what the applet had used of the processor when it began
	spent  time.Duration // what it has used since
	unread bool          // nobody wanted to read on, and so the applet was killed

	id      atomic.Int64  // once it runs; for the meter
	peak    atomic.Int64  // bytes of memory that it was seen to have
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
		if p.key != "" {
			limits.CPU += c.Timeout // for the items before the last one; see settle
		}
		spec = appletSpec{p.tool.Name, limits, w.pid, c.Inputs, p.key != ""}
		argv = argv[1:]
	} else {
		if err := p.tool.readELF(); err != nil {
			return err
		}
		s := jail.Spec{
			Path: p.tool.file, Env: environment, Limits: limits, Parent: w.pid,
			Read: append(p.tool.reads(), inputFiles(p.inputs, c)...), Scratch: p.scratch, Dir: p.inputs, Threads: p.tool.Threads,
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
		return p.openInputs(c)
	}
	return nil
}

// openInputs gives an applet, which can open no file, the files of its inputs as descriptors: from 3 on, in order.
func (p *process) openInputs(c wire.Command) error {
	for _, file := range inputFiles(p.inputs, c) {
		f, err := os.Open(file)
		if err != nil {
			closeAll(p.cmd.ExtraFiles...)
			return fmt.Errorf("opening an input: %w", err)
		}
		p.cmd.ExtraFiles = append(p.cmd.ExtraFiles, f)
	}
	return nil
}

// self starts this binary again, in another role.
func (w *worker) self(role, spec string, argv []string) *exec.Cmd {
	return &exec.Cmd{
		Path: "/proc/self/exe",
		Args: slices.Concat([]string{processName}, w.prefix, []string{role, spec}, argv),
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
	if p.tool == nil {
		go p.sleep(timer, stdin, stdout, exits)
		return nil
	}
	defer stdin.Close()
	defer stdout.Close()
	defer closeAll(p.cmd.ExtraFiles...)
	p.cmd.Stdin, p.cmd.Stdout = stdin, stdout
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.tool.Name, err)
	}
	p.id.Store(int64(p.cmd.Process.Pid))
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

// pid returns the process's id, 0 for a timer and for what has not started.
func (p *process) pid() int { return int(p.id.Load()) }

// sawMemory takes note of how much memory the process has.
func (p *process) sawMemory(bytes int64) {
	for {
		before := p.peak.Load()
		if bytes <= before || p.peak.CompareAndSwap(before, bytes) {
			return
		}
	}
}

// cpu returns the processor time that an ended process has used.
func (p *process) cpu() time.Duration {
	switch {
	case p.key != "":
		return p.spent
	case p.cmd == nil || p.cmd.ProcessState == nil:
		return 0
	}
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}
