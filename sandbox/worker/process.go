//go:build linux

package worker

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// environment is all that a program sees, but for TMPDIR where it has a scratch directory.
var environment = []string{"LC_CTYPE=C.UTF-8", "PATH=/usr/bin", "TZ=UTC"}

// appletEnvironment keeps the Go runtime from describing itself when memory runs out, and from reading control groups
// to find out how many processors it may use. Applets do not see it.
var appletEnvironment = append(slices.Clone(environment), "GOTRACEBACK=none", "GOMAXPROCS="+strconv.Itoa(firstThreads), ownProcessors)

// ownProcessors keeps the Go runtime from looking for a number of processors that GOMAXPROCS gives it: that takes a tenth
// of its start.
const ownProcessors = "GODEBUG=containermaxprocs=0,updatemaxprocs=0"

// cpuGrace is what the processor time of a command may exceed its timeout by: the clock ends it first, this is for a
// worker that cannot.
const cpuGrace = time.Second

// A process is one running command of a chain: a jailed program, an applet, or what needs no process, a timer or a part.
type process struct {
	index   int
	tool    *tool // nil for what needs no process
	task    *task // once it is started; nil for what needs no process
	stderr  *stderr
	scratch string
	inputs  string // the directory of its named inputs, empty if it has none
	view    *view  // of the workspace, until it has started; nil if it names no file
	started time.Time
	kills   int64 // of the kernel for want of memory, at the start
	limit   int64 // bytes of private memory
	disk    int64 // bytes that it may have in scratch
	elapsed time.Duration

	taken     reading       // when it was last looked at; for the meter, by which it is guarded
	condemned *wire.Failure // why it has to go; likewise

	// Of an applet.
	kept   *kept // once it is there
	served bool  // it has run to its end, with this status
	status int
	before time.Duration // what the applet had used of the processor when it began
	spent  time.Duration // what it has used since
	unread bool          // its output had no reader any more, and so the applet was killed

	id     atomic.Int64 // once it runs; for the meter
	peak   atomic.Int64 // bytes of memory that it was seen to have
	cancel func()       // ends early what is no process
	enough atomic.Bool  // a part that is complete: it reads no more of those before it
	killed bool         // by this worker
	exited bool
}

// limitsOf are those of the process of a command.
func (p *process) limitsOf(c wire.Command, chain wire.Chain) jail.Limits {
	l := jail.Limits{CPU: c.Timeout + cpuGrace, Data: uint64(chain.Memory), File: uint64(chain.Disk)}
	switch {
	case p.tool.linked():
		if c.Check != nil {
			l.Soft = uint64(startData + c.Check.Memory) // only soft: it may be the process that runs the command then
		}
		if p.view == nil && (c.Each || len(c.Inputs) == 0) {
			l.CPU += c.Timeout // for what was before; see settle
		}
	case c.Check != nil:
		l.CPU, l.Data = c.Check.CPU, uint64(c.Check.Memory)
	}
	return l
}

// cpuLimit is how much processor time an applet may use for a command.
func cpuLimit(c wire.Command) time.Duration {
	if c.Check != nil {
		return c.Check.CPU
	}
	return c.Timeout + cpuGrace
}

// command is what the jail needs to start a program.
func (p *process) command(c wire.Command, chain wire.Chain) jail.Command {
	command := jail.Command{Argv: c.Argv, Env: environment, Limits: p.limitsOf(c, chain)}
	if p.tool.Scratch {
		command.Env = append(slices.Clone(environment), "TMPDIR="+p.scratch)
	}
	return command
}

// spec is what an applet needs to be the program of p.
func (p *process) spec(c wire.Command, chain wire.Chain) appletSpec {
	s := appletSpec{
		Name: p.tool.Name, Args: c.Argv[1:], Memory: uint64(chain.Memory), Inputs: c.Inputs, Items: c.Batch > 0, Check: c.Check != nil && c.Check.Script,
	}
	if p.view != nil {
		s.Files = len(p.view.files)
	}
	return s
}

// start starts a program in its jail, and returns our ends of its pipes.
func (w *worker) start(p *process, c wire.Command, chain wire.Chain, exits chan<- *process) (e ends, err error) {
	w.meter.makeWay(chain.Worker)
	dir := p.inputs
	if p.view != nil {
		dir = fmt.Sprintf("/proc/self/fd/%d", p.view.dir.Fd()) // the directory itself, even if another one has its name now
	}
	cell, private, err := p.tool.cell(p.scratch, dir, inputFiles(p.inputs, c), p.view)
	if err != nil {
		return e, err
	}
	if private {
		defer cell.Close()
	}
	t, err := connect(cell.Start, p.command(c, chain))
	if err != nil {
		return e, err
	}
	p.task, p.stderr = t, t.stderr
	p.id.Store(int64(t.Pid()))
	go func() {
		<-t.done
		exits <- p
	}()
	return ends{in: t.in, stdin: t.in, out: t.out}, nil
}

// hire returns an applet that has the program of p and waits for an input: one that has it already, one that can get it,
// or a new one.
func (w *worker) hire(p *process, c wire.Command, chain wire.Chain) (k *kept, err error) {
	key := keptKey(c, chain.Memory)
	var files []*os.File
	for _, file := range inputFiles(p.inputs, c) {
		// It can open no file: it gets those of its inputs as descriptors, from 3 on, in order.
		f, err := os.Open(file)
		if err != nil {
			closeAll(files...)
			return nil, fmt.Errorf("opening an input: %w", err)
		}
		defer f.Close()
		files = append(files, f)
	}
	spec := p.spec(c, chain)
	if spec.Files > 0 {
		files = append(files, p.view.files...)
	}
	if c.Check == nil && spec.Files == 0 {
		if k = w.idle.has(key); k != nil {
			if !c.Each {
				k.turns++
			}
			return k, nil
		}
	}
	limits := p.limitsOf(c, chain)
	for old := true; old; {
		k = nil
		if len(files) == 0 {
			k = w.idle.free(limits.Hard())
		}
		if old = k != nil; !old {
			w.meter.makeWay(chain.Worker)
			if k, err = w.idle.start(files); err != nil {
				return nil, err
			}
		}
		if err = k.learn(key, limits, spec); err == nil {
			k.turns++
			return k, nil
		}
		w.idle.discard(k)
	}
	return nil, err
}

// kill ends the process. The jail permits it to start no other, so that there is no group to kill, whose number might belong
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

// ended reports whether the process of a program has ended by itself.
func (p *process) ended() bool {
	return p.task != nil && p.kept == nil && !p.killed && p.task.state.Status.Exited()
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
	case p.kept != nil:
		return p.spent
	case p.task == nil:
		return 0
	}
	return p.task.state.CPU
}
