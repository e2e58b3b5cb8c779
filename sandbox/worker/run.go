//go:build linux

package worker

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// A run is one chain that is running. All of its fields belong to the goroutine that runs it.
type run struct {
	worker *worker
	stream *wire.Stream
	chain  wire.Chain

	processes  []*process
	clocks     []*clock
	pumps      []*pump // pumps[i] feeds command i; the last one feeds the stream
	exits      chan *process
	alive      int
	kills      int64 // of the kernel for want of memory, at the start
	failure    *wire.Failure
	flushAfter int // ticks until those that may have failed first are killed too
}

const (
	causeTicks = 5 // of waiting for the exit of commands before one that has failed: they may be the real cause
	diskTicks  = 5 // looks at memory between two at the scratch directories
)

// start starts the commands in their order, up to the first that fails: it returns that failure, and those before keep running.
func (r *run) start() *wire.Failure {
	r.kills = oomKills()
	var src io.Reader = r.stream
	stopSrc := func() { _ = r.stream.StopReading() }
	for i, c := range r.chain.Commands {
		p, err := r.worker.newProcess(i, r.chain)
		r.processes = append(r.processes, p)
		failure := r.worker.meter.enter(p, r.chain.Worker)
		var e ends
		if failure == nil && err == nil {
			e, err = r.launch(p, c)
		}
		if err != nil {
			failure = refusal(i, err)
		}
		if failure != nil {
			p.exited = true
			r.worker.meter.leave(p)
			stopSrc()
			return failure
		}
		r.alive++
		r.pump(src, e.in, stopSrc, closer(e.in), c.EndLine)
		r.clocks = append(r.clocks, &clock{in: r.pumps[i], stdin: e.stdin})
		if i > 0 {
			r.clocks[i-1].out = r.pumps[i]
		}
		src, stopSrc = e.out, closer(e.out)
	}
	r.pump(src, r.stream, stopSrc, func() {}, false)
	r.clocks[len(r.clocks)-1].out = r.pumps[len(r.pumps)-1]
	return nil
}

// ends are a command's standard input and output, as the worker has them.
type ends struct {
	in    io.WriteCloser
	stdin *os.File // the pipe behind in
	out   io.ReadCloser
}

// launch starts one command between two pipes, or gives an applet its next input.
func (r *run) launch(p *process, c wire.Command) (e ends, err error) {
	p.started = time.Now()
	switch {
	case c.Part != nil:
		return p.pass(*c.Part, r.linger(p.index), r.exits), nil
	case c.Timer > 0:
		return p.sleep(c.Timer, r.exits)
	}
	defer p.closeView()
	if c, err = r.worker.furnish(p, c); err != nil {
		return e, err
	}
	if p.tool.linked() {
		if p.kept, err = r.worker.hire(p, c, r.chain); err == nil {
			return p.kept.begin(p, r.exits), nil
		}
	} else {
		p.kills = r.kills
		if e, err = r.worker.start(p, c, r.chain, r.exits); err == nil {
			return e, nil
		}
	}
	return e, fmt.Errorf("starting %s: %w", p.tool.Name, err)
}

func (r *run) pump(src io.Reader, dst io.Writer, closeSrc, closeDst func(), endLine bool) {
	p := &pump{src: src, dst: dst, endLine: endLine, close: [2]func(){closeSrc, closeDst}, done: make(chan struct{})}
	r.pumps = append(r.pumps, p)
	go p.run(&r.worker.buffers)
}

func closer(c io.Closer) func() { return func() { c.Close() } }

// wait returns when every process has exited.
func (r *run) wait(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	cancelled := ctx.Done()
	last := time.Now()
	for r.alive > 0 {
		select {
		case p := <-r.exits:
			r.exited(p)
		case <-cancelled:
			cancelled = nil
			r.fail(&wire.Failure{Command: len(r.processes) - 1, Reason: wire.Cancelled})
			r.killAll()
		case now := <-ticker.C:
			r.tick(now.Sub(last))
			last = now
		}
	}
	// Commands that a cancelled run has fed the end of an incomplete input may have exited as if all was well.
	if ctx.Err() != nil && r.failure == nil {
		r.failure = &wire.Failure{Command: len(r.processes) - 1, Reason: wire.Cancelled}
	}
}

// exited notes the end of a process: it does not read any more, and may be why the chain has failed.
func (r *run) exited(p *process) {
	p.exited = true
	r.worker.meter.leave(p)
	p.elapsed = time.Since(p.started)
	r.alive--
	in := r.pumps[p.index]
	early := !in.ended.Load()
	in.stop()
	if f := p.judge(r.readerStopped(p.index)); f != nil {
		r.flush(p.index)
		if r.needed(p.index) {
			r.fail(f)
			return
		}
	}
	if early && !p.killed {
		// Nobody reads the output of the processes before this one any more.
		for _, before := range r.processes[:p.index] {
			before.kill()
		}
	}
}

// flushTime is how long the reader of a command that has failed may take for what it had written before.
const flushTime = time.Second

// flush waits until everything that an ended command has written is passed on, through the parts behind it too. A run
// that is cancelled ends that.
func (r *run) flush(i int) {
	late := time.NewTimer(flushTime)
	defer late.Stop()
	for i++; i < len(r.pumps); i++ {
		select {
		case <-r.pumps[i].done:
		case <-late.C:
			return
		}
		if i == len(r.processes) || !r.passes(i) {
			return
		}
	}
}

// passes says whether command i is a part, which takes no time of its own.
func (r *run) passes(i int) bool { return r.chain.Commands[i].Part != nil }

// needed says whether something may still read what command i writes, or what is made of it. A part knows that before it
// has exited: when a command fails that has already given it all it wants, that is not left to chance.
func (r *run) needed(i int) bool {
	return !slices.ContainsFunc(r.processes[i+1:], func(p *process) bool { return p.enough.Load() })
}

// abandoned says whether a part behind command i has exited with all that it wanted. No clock runs for those before it.
func (r *run) abandoned(i int) bool {
	return slices.ContainsFunc(r.processes[i+1:], func(p *process) bool { return p.exited && p.enough.Load() })
}

func (r *run) readerStopped(i int) bool {
	return i+1 < len(r.pumps) && r.pumps[i+1].refused.Load()
}

// fail makes f the cause, unless there is one that came before it in the chain or in time, and kills what cannot be
// an earlier cause.
func (r *run) fail(f *wire.Failure) {
	if r.failure != nil && (f.Reason == wire.Cancelled || r.failure.Command <= f.Command) {
		return
	}
	r.failure = f
	r.flushAfter = causeTicks
	r.stream.Abort()
	for i, p := range r.processes {
		// A command before this one that has ended its output is exiting, and may have failed first.
		if i < f.Command && i+1 < len(r.pumps) && r.pumps[i+1].ended.Load() {
			continue
		}
		p.kill()
	}
}

func (r *run) killAll() {
	for _, p := range r.processes {
		p.kill()
	}
}

// tick enforces what only time can tell.
func (r *run) tick(d time.Duration) {
	if r.failure != nil {
		if r.flushAfter--; r.flushAfter <= 0 {
			r.killAll()
		}
		return
	}
	for i, p := range r.processes {
		switch {
		case p.exited || p.killed || r.passes(i):
			continue
		case r.abandoned(i):
			p.kill() // it had ended its output, and goes on
			continue
		case !r.needed(i):
			continue
		}
		c := r.chain.Commands[i]
		r.clocks[i].advance(d)
		if c.Check == nil && r.clocks[i].used > cmp.Or(c.Batch, c.Timeout) { // a check on a busy machine has its whole share of the processor
			r.fail(&wire.Failure{Command: i, Reason: wire.Timeout})
			return
		}
		if p.kept != nil && p.kept.clock()-p.before > cpuLimit(c) {
			r.fail(&wire.Failure{Command: i, Reason: wire.CPULimit}) // RLIMIT_CPU counts the inputs before it too
			return
		}
		if f := r.worker.meter.check(p, r.chain.Worker); f != nil {
			r.fail(f)
			return
		}
	}
}

// finish waits until all data has been passed on, cleans up and sums up.
func (r *run) finish() wire.Outcome {
	if r.failure != nil {
		for _, p := range r.pumps {
			p.stop()
		}
	}
	for _, p := range r.pumps {
		<-p.done
	}
	o := wire.Outcome{Failure: r.failure}
	for i, p := range r.processes {
		if p.scratch != "" {
			r.worker.scratch.leave(p.scratch)
		}
		if p.kept != nil {
			r.release(p)
		}
		u := wire.Usage{Elapsed: p.elapsed, CPU: p.cpu()}
		if r.failure == nil && p.ended() && !r.readerStopped(i) {
			u.Said = p.stderr.beginning(wire.MaxSaid)
		}
		if i < len(r.pumps) {
			u.In = r.pumps[i].given.Load()
		}
		if i+1 < len(r.pumps) {
			u.Out = r.pumps[i+1].taken.Load()
		}
		o.Usage = append(o.Usage, u)
	}
	if f := o.Failure; f != nil {
		r.describe(f)
	}
	return o
}

// release keeps the applet of p for another input or command, or ends it.
func (r *run) release(p *process) {
	dying := p.killed || p.unread // which it may have been too late for
	c := r.chain.Commands[p.index]
	if p.served && !dying && p.kept.settle(c, r.chain.Memory) {
		r.worker.idle.put(p.kept)
		return
	}
	p.kept.end()
}

// describeLimit adds the limit that a command has reached by itself.
func describeLimit(f *wire.Failure, chain wire.Chain) {
	if f.Worker {
		return
	}
	switch f.Reason {
	case wire.MemoryLimit:
		f.Limit = chain.Memory
		if check := chain.Commands[f.Command].Check; check != nil {
			f.Limit = check.Memory
		}
	case wire.DiskLimit:
		f.Limit = chain.Disk
	}
}

// describe adds what is known about the command that failed.
func (r *run) describe(f *wire.Failure) {
	describeLimit(f, r.chain)
	if f.Command < len(r.pumps) {
		p := r.pumps[f.Command]
		f.Sample, f.Cut = p.sample, p.taken.Load() > int64(len(p.sample))
	}
	if f.Stderr == "" && f.Command < len(r.processes) {
		f.Stderr = r.processes[f.Command].stderr.text()
	}
}
