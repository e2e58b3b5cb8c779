//go:build linux

package worker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// A worker runs chains.
type worker struct {
	hostInfo hostInfo
	tools    map[string]*tool
	scratch  scratch
	inputs   inputs
	buffers  wire.Buffers
	meter    meter
	idle     idlePool

	processors int // that it may use; it uses one for short runs, which end sooner than others have woken up
}

func newWorker(o Options, dir string, s hostInfo) *worker {
	w := &worker{scratch: scratch{base: dir}, hostInfo: s, tools: toolsOf(s, o.Extra), processors: runtime.GOMAXPROCS(1)}
	w.inputs.dir = filepath.Join(dir, "inputs")
	w.meter.inputs, w.meter.idle = &w.inputs, &w.idle
	w.idle.start = s.starter(o.Prefix)
	time.AfterFunc(spareDelay, w.idle.spare) // most runs need one
	return w
}

// hello says what this worker is. It claims what it has seen: see [jail.Locked].
func (w *worker) hello() wire.Hello {
	h := wire.Hello{
		Profile: wire.Dynamic, Landlock: w.hostInfo.Support.Landlock, Seccomp: w.hostInfo.Support.Seccomp, NoNewPrivs: true,
		UID: os.Getuid(), Around: w.hostInfo.Around, Workspace: w.hostInfo.Workspace != "", Programs: w.hostInfo.Found,
	}
	if h.Landlock == 0 {
		h.Profile = wire.Pure
	}
	return h
}

// busy gives a run all processors when it has lasted for a while, until the worker is renewed.
func (w *worker) busy(run wire.Runner) wire.Runner {
	return func(ctx context.Context, s *wire.Stream, chain wire.Chain) wire.Outcome {
		late := time.AfterFunc(whileOfOne, func() { runtime.GOMAXPROCS(w.processors) })
		defer late.Stop()
		return run(ctx, s, chain)
	}
}

// run is the [wire.Runner].
func (w *worker) run(ctx context.Context, s *wire.Stream, chain wire.Chain) wire.Outcome {
	if chain.Keep != nil {
		return w.keep(s, *chain.Keep)
	}
	if len(chain.Commands) == 0 {
		return wire.Outcome{Failure: &wire.Failure{Reason: wire.Refused, Detail: "the chain is empty"}}
	}
	r := &run{worker: w, stream: s, chain: chain, exits: make(chan *process, len(chain.Commands))}
	if failure := r.start(); failure != nil {
		r.fail(failure)
	}
	r.wait(ctx)
	return r.finish()
}

// renew leaves nothing of what was run. Its caller sees to it that nothing runs. A file that cannot be removed is an error,
// and so the end of this worker.
func (w *worker) renew() error {
	w.idle.renew()
	w.inputs.drop()
	if n := w.meter.count(); n > 0 {
		return fmt.Errorf("%d commands of the run before still run", n)
	}
	if err := w.scratch.check(); err != nil {
		return err
	}
	runtime.GOMAXPROCS(1)
	return nil
}

// newProcess readies command i of a chain.
func (w *worker) newProcess(i int, chain wire.Chain) (_ *process, err error) {
	c := chain.Commands[i]
	p := &process{index: i, stderr: new(stderr)}
	if c.Timer > 0 || c.Part != nil {
		return p, nil
	}
	t, ok := w.tools[c.Name]
	if !ok {
		return p, fmt.Errorf("%q is not a program of this worker", c.Name)
	}
	p.tool, p.limit, p.disk = t, chain.Memory, chain.Disk
	if len(c.Argv) == 0 {
		return p, fmt.Errorf("%s: the arguments lack the name", c.Name)
	}
	if c.Check != nil {
		p.limit = c.Check.Memory
		if c.Check.Script {
			if !t.Script {
				return p, fmt.Errorf("%s has no script", c.Name)
			}
			p.tool = &tool{Program: programs.Program{Name: c.Name}, reader: true}
		}
	}
	return p, nil
}

// furnish gives p the files that its command needs, and returns the command as p is to run it: the reader of its script,
// an applet of this binary whatever the program is, needs none.
func (w *worker) furnish(p *process, c wire.Command) (_ wire.Command, err error) {
	if p.tool.reader {
		c.Inputs, c.Files, c.Each = nil, nil, false
		return c, nil
	}
	if p.inputs, err = w.inputsOf(c); err != nil {
		return c, err
	}
	if p.view, err = w.look(p.tool, c); err != nil {
		return c, err
	}
	if p.tool.Scratch {
		p.scratch, err = w.scratch.take()
	}
	return c, err
}
