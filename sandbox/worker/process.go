//go:build linux

package worker

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// environment is all that a program sees, but for TMPDIR where its table entry asks for it.
var environment = []string{"LC_CTYPE=C.UTF-8", "PATH=/usr/bin", "TZ=UTC"}

// appletEnvironment keeps the Go runtime from describing itself when memory runs out, and from reading control groups
// to find out how many processors it may use. Applets do not see it.
var appletEnvironment = append(slices.Clone(environment), "GOTRACEBACK=none", "GOMAXPROCS="+strconv.Itoa(firstThreads), ownProcessors)

// ownProcessors keeps the Go runtime from looking for a number of processors that it is told: that takes a tenth of its
// start.
const ownProcessors = "GODEBUG=containermaxprocs=0,updatemaxprocs=0"

// cpuGrace is what the processor time of a command may exceed its timeout by: the clock ends it first, this is for a
// worker that cannot.
const cpuGrace = time.Second

// A process is one running command of a chain: a jailed program, an applet, or what needs no process, a timer or a part.
type process struct {
	index   int
	tool    *tool // nil for what needs no process
	how     recipe
	task    *task // once it is started; nil for what needs no process
	stderr  *stderr
	scratch string
	room    *room  // that scratch belongs to, if it outlives the process
	inputs  string // the directory of its named inputs, empty if it has none
	view    *view  // of the workspace; nil if it names no file
	started time.Time
	kills   int64 // of the kernel for want of memory, at the start
	limit   int64 // bytes of private memory
	elapsed time.Duration

	// Of an applet that is kept.
	key    string // what it can be used for; empty if it is not kept
	items  bool   // a for_each may have more items for it
	kept   *kept  // once it is there
	served bool   // it has run to its end, with this status
	status int
	before time.Duration // what the applet had used of the processor when it began
	spent  time.Duration // what it has used since
	unread bool          // nobody wanted to read on, and so the applet was killed

	id     atomic.Int64 // once it runs; for the meter
	peak   atomic.Int64 // bytes of memory that it was seen to have
	cancel func()       // ends early what is no process
	enough atomic.Bool  // a part that is complete: those before it work for nobody
	killed bool         // by this worker
	exited bool
}

// command finds out how p is started. It returns an error that says why it is not.
func (w *worker) command(p *process, c wire.Command, chain wire.Chain) (err error) {
	limits := limitsOf(c, chain, p.key != "")
	if p.tool.Applet != nil {
		return w.applet(p, c, limits)
	}
	p.how.command = jail.Command{Argv: inScratch(c.Argv, p.scratch), Env: environment, Limits: limits}
	if p.tool.TempEnv {
		p.how.command.Env = append(slices.Clone(environment), "TMPDIR="+p.scratch)
	}
	if p.room != nil {
		p.how.cell = p.room.cell
		return nil
	}
	dir := p.inputs
	if p.view != nil {
		dir = w.survey.Workspace
		defer p.closeView()
	}
	p.how.cell, p.how.private, err = p.tool.cell(p.scratch, dir, inputFiles(p.inputs, c), p.view)
	return err
}

// applet is command for a program that is linked in.
func (w *worker) applet(p *process, c wire.Command, limits jail.Limits) error {
	p.how = recipe{
		applets: w.applets, command: jail.Command{Limits: limits},
		spec: appletSpec{Name: p.tool.Name, Args: c.Argv[1:], Memory: limits.Data, Inputs: c.Inputs, Keep: p.key != ""},
	}
	for _, file := range inputFiles(p.inputs, c) {
		// It can open no file: it gets those of its inputs as descriptors, from 3 on, in order.
		f, err := os.Open(file)
		if err != nil {
			p.how.drop()
			return fmt.Errorf("opening an input: %w", err)
		}
		p.how.inputs = append(p.how.inputs, f)
	}
	if p.view != nil {
		p.how.spec.Files = len(p.view.files)
		p.how.inputs, p.view.files = append(p.how.inputs, p.view.files...), nil
		p.closeView()
	}
	return nil
}

// again readies p, whose applet has served it, for the next item.
func (p *process) again(started time.Time) {
	p.started, p.served, p.status, p.spent = started, false, 0, 0
	*p.stderr = stderr{}
}

// inScratch puts the directory where arguments ask for one.
func inScratch(argv []string, dir string) []string {
	out := slices.Clone(argv)
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], programs.ScratchDir, dir)
	}
	return out
}

// start starts the command, and returns our ends of its pipes.
func (p *process) start(exits chan<- *process) (e ends, err error) {
	t, err := p.how.start()
	if err != nil {
		return e, fmt.Errorf("starting %s: %w", p.tool.Name, err)
	}
	p.task, p.stderr = t.task, t.stderr
	p.id.Store(int64(t.Pid()))
	go func() {
		<-t.done
		exits <- p
	}()
	return ends{in: t.in, stdin: t.in, out: t.out}, nil
}

// kill ends the process. The jail lets it start no other, so that there is no group to kill, whose number might belong
// to somebody else by now. It is for the chain's own goroutine.
func (p *process) kill() {
	if p.killed || p.exited {
		return
	}
	p.killed = true
	if p.tool == nil {
		p.cancel()
		return
	}
	p.task.Kill()
}

// pid returns the process's id, 0 for what needs no process and for what has not started.
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
	case p.task == nil:
		return 0
	}
	return p.task.state.CPU
}
