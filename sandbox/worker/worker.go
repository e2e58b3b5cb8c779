//go:build linux

package worker

import (
	"context"
	"fmt"
	"os"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// A worker runs chains.
type worker struct {
	applets *applets
	survey  survey
	tools   map[string]*tool
	scratch scratch
	rooms   rooms
	inputs  inputs
	buffers buffers
	meter   meter
	idle    idlePool
}

func newWorker(o Options, dir scratch, s survey) *worker {
	w := &worker{applets: newApplets(o.Prefix, s), scratch: dir, survey: s, tools: toolsOf(s, o.Extra)}
	w.meter.inputs, w.meter.idle = &w.inputs, &w.idle
	return w
}

// hello says what this worker is. It claims what it has seen: see [jail.Locked].
func (w *worker) hello() wire.Hello {
	h := wire.Hello{
		Profile: wire.Dynamic, Landlock: w.survey.Support.Landlock, Seccomp: w.survey.Support.Seccomp, NoNewPrivs: true,
		UID: os.Getuid(), Around: w.survey.Around, Workspace: w.survey.Workspace != "", Programs: w.survey.Found,
	}
	if h.Landlock == 0 {
		h.Profile = wire.Pure
	}
	return h
}

// prepare has applets wait for a chain.
func (w *worker) prepare(chain wire.Chain) {
	n := 0
	for _, c := range chain.Commands {
		if t := w.tools[c.Name]; t != nil && t.Applet != nil && len(c.Inputs) == 0 && len(c.Files) == 0 {
			n++
		}
	}
	w.applets.expect(n - w.idle.atHand())
}

// run is the [wire.Runner].
func (w *worker) run(ctx context.Context, s *wire.Stream, chain wire.Chain) wire.Outcome {
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

// renew leaves nothing of what was run. Its caller sees to it that nothing runs. What cannot be removed is an error, and so
// the end of this worker.
func (w *worker) renew() error {
	kept := w.idle.renew(maxSpares)
	w.inputs.drop()
	if n := w.meter.count(); n > 0 {
		return fmt.Errorf("%d commands of the run before still run", n)
	}
	if err := w.rooms.empty(w.scratch); err != nil {
		return err
	}
	w.applets.renew(kept)
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
	p.tool, p.limit = t, chain.Memory
	if len(c.Argv) == 0 {
		return p, fmt.Errorf("%s: the arguments lack the name", c.Name)
	}
	if p.inputs, err = w.inputsOf(c); err != nil {
		return p, err
	}
	if p.view, err = w.look(t, c.Files); err != nil {
		return p, err
	}
	if t.Scratch {
		if err := w.house(p); err != nil {
			p.closeView()
			return p, err
		}
	}
	if t.keeps(c) {
		p.key, p.items = keptKey(c, chain.Memory), c.Each
		if p.kept = w.old(p, c, chain); p.kept != nil {
			return p, nil
		}
	}
	return p, w.command(p, c, chain)
}

// house gives a process a directory to write in. With named inputs or files its jail is like no other.
func (w *worker) house(p *process) (err error) {
	if p.inputs != "" || p.view != nil {
		p.scratch, err = w.scratch.make()
		return err
	}
	if p.room, err = w.rooms.take(p.tool, w.scratch); err != nil {
		return err
	}
	p.scratch = p.room.dir
	return nil
}
