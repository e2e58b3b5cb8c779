//go:build linux

package worker

import (
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// A run is one chain that is running. All of its fields belong to the goroutine that runs it.
type run struct {
	worker *worker
	stream *wire.Stream
	chain  wire.Chain

	processes []*process
	clocks    []*clock
	pumps     []*pump // pumps[i] feeds command i; the last one feeds the stream
	exits     chan *process
	alive     int
	failure   *wire.Failure
	patience  int // ticks until those that may have failed first are killed too
}

// Ticks of waiting for the exit of commands that came before one that has failed: they may be the real cause. And
// ticks between two looks at the scratch directories.
const (
	causeTicks = 5
	diskTicks  = 5
)

// start starts all commands, the last failure is returned; those before it are left running.
func (r *run) start() *wire.Failure {
	var src io.Reader = r.stream
	stopSrc := func() { _ = r.stream.StopReading() }
	for i, c := range r.chain.Commands {
		p, err := r.worker.newProcess(i, r.chain)
		r.processes = append(r.processes, p)
		var in, out [2]*os.File // the reading and the writing end
		if err == nil {
			in, out, err = pipes()
		}
		if err == nil {
			if err = p.start(in[0], out[1], c.Timer, r.exits); err != nil {
				closeAll(in[1], out[0])
			}
		}
		if err != nil {
			p.exited = true
			stopSrc()
			return &wire.Failure{Command: i, Reason: wire.Refused, Detail: err.Error()}
		}
		r.alive++
		r.pump(src, in[1], stopSrc, closer(in[1]))
		r.clocks = append(r.clocks, &clock{in: r.pumps[i], stdin: in[1]})
		if i > 0 {
			r.clocks[i-1].out = r.pumps[i]
		}
		src, stopSrc = out[0], closer(out[0])
	}
	r.pump(src, r.stream, stopSrc, func() {})
	r.clocks[len(r.clocks)-1].out = r.pumps[len(r.pumps)-1]
	return nil
}

func (r *run) pump(src io.Reader, dst io.Writer, closeSrc, closeDst func()) {
	p := &pump{src: src, dst: dst, close: [2]func(){closeSrc, closeDst}, done: make(chan struct{})}
	r.pumps = append(r.pumps, p)
	go p.run(&r.worker.buffers)
}

func pipes() (in, out [2]*os.File, err error) {
	if in[0], in[1], err = os.Pipe(); err != nil {
		return in, out, err
	}
	if out[0], out[1], err = os.Pipe(); err != nil {
		closeAll(in[0], in[1])
		return in, out, err
	}
	widen(in[1])
	widen(out[0])
	return in, out, nil
}

// pipeSize is what a pipe holds where the system allows it. More than the usual 64 KiB lets the two ends take turns
// less often.
const pipeSize = 256 << 10

func widen(f *os.File) {
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close()
	}
}

func closer(f *os.File) func() { return func() { f.Close() } }

// wait returns when every process has exited.
func (r *run) wait(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	cancelled := ctx.Done()
	last := time.Now()
	for n := 1; r.alive > 0; {
		select {
		case p := <-r.exits:
			r.exited(p)
		case <-cancelled:
			cancelled = nil
			r.fail(&wire.Failure{Command: len(r.processes) - 1, Reason: wire.Cancelled})
			r.killAll()
		case now := <-ticker.C:
			r.tick(now.Sub(last), n%diskTicks == 0)
			last = now
			n++
		}
	}
	// Commands that a cancelled run has fed the end of an incomplete input may have exited as if all was well.
	if ctx.Err() != nil && r.failure == nil {
		r.failure = &wire.Failure{Command: len(r.processes) - 1, Reason: wire.Cancelled}
	}
}

// exited takes note of the end of a process: it does not read any more, and may be why the chain has failed.
func (r *run) exited(p *process) {
	p.exited = true
	p.elapsed = time.Since(p.started)
	r.alive--
	in := r.pumps[p.index]
	early := !in.ended.Load()
	in.stop()
	if f := p.judge(r.readerStopped(p.index)); f != nil {
		r.fail(f)
		return
	}
	if early && !p.killed {
		// What comes before works for nobody now.
		for _, before := range r.processes[:p.index] {
			before.kill()
		}
	}
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
	r.patience = causeTicks
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
func (r *run) tick(d time.Duration, disk bool) {
	if r.failure != nil {
		if r.patience--; r.patience <= 0 {
			r.killAll()
		}
		return
	}
	for i, p := range r.processes {
		if p.exited || p.killed {
			continue
		}
		r.clocks[i].advance(d)
		if r.clocks[i].used > r.chain.Commands[i].Timeout {
			r.fail(&wire.Failure{Command: i, Reason: wire.Timeout})
			return
		}
		if disk && p.scratch != "" && diskUsed(p.scratch) > r.chain.Disk {
			r.fail(&wire.Failure{Command: i, Reason: wire.DiskLimit})
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
			_ = os.RemoveAll(p.scratch) // what stays is removed with the base directory
		}
		u := wire.Usage{Elapsed: p.elapsed, CPU: p.cpu()}
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

// describe adds what is known about the command that failed.
func (r *run) describe(f *wire.Failure) {
	if f.Command < len(r.pumps) {
		p := r.pumps[f.Command]
		f.Sample, f.Cut = p.sample, p.taken.Load() > int64(len(p.sample))
	}
	if f.Stderr == "" && f.Command < len(r.processes) {
		f.Stderr = r.processes[f.Command].stderr.text()
	}
}
