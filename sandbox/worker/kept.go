//go:build linux

package worker

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// A kept applet is one jailed process that runs commands on inputs, one after another: it is started, its program compiled
// and its named inputs read once. Nothing of an input is left when the next one comes but what the Go runtime has not given
// back.
type kept struct {
	key     string      // of the command that it has; empty: none
	limits  jail.Limits // of the process, for all that it does
	bound   bool        // it has named inputs or files, and so no other program
	turns   int         // programs that it has had, and commands that are one input
	alone   int64       // bytes of memory that it has, after the last input
	data    int64       // bytes that count for its limit, touched or not; likewise
	born    int64       // the same before its first program
	task    *task       // its standard error is what the runtime says when it fails
	in, out *os.File
	kills   int64       // of the kernel for want of memory, when it was started
	send    frameWriter // to in; for the pump that feeds the input
	receive frameReader // of out; for the pump that takes what it says

	// Of the present input; for the pump that feeds it, and after the pump for the one that settles it.
	whole bool // the input has been sent to its end
	torn  bool // a frame was not sent to its end

	mu    sync.Mutex
	now   *process // that the applet runs; nil between inputs
	exits chan<- *process
	used  time.Duration // of the processor, at the end of the last input
}

// settleTime is how long an applet may take to read what was sent of an input that it has done with.
const settleTime = time.Second

// keptShare is the part of an applet's limit of memory that it may have taken, at most, when it gets a next input: the
// heap of the ones before is used again, but not given back.
const keptShare = 4

// The most that an applet may have done when it gets another program. Its start takes several times what most of them
// need, and nothing of it is left to report by then: each command that it had ended by itself, with an exit status.
const (
	maxTurns    = 50
	reuseCPU    = time.Second
	reuseShare  = 8        // of the limit of processor time
	reuseMemory = 16 << 20 // bytes that it has; of those that count for its limit, freshData
)

// startData is more than what the Go runtime takes at its start, which counts for the limit: 64 MiB of heap and what it needs
// to know of them. With cgo each thread adds a stack of 8 MiB: laterData is for those that come after the start, and less
// than the next 64 MiB of heap.
const (
	startData = 96 << 20
	laterData = 40 << 20
)

// freshData is how much may count for the limit of an applet that has as much left as a new process.
func (k *kept) freshData() int64 { return max(startData, k.born+laterData) }

// newKept makes an applet without a program of a process that has started.
func newKept(t *task, bound bool, kills int64) *kept {
	return &kept{
		bound: bound, task: t, in: t.in, out: t.out, kills: kills,
		send: frameWriter{w: t.in}, receive: frameReader{r: bufio.NewReaderSize(t.out, frameHeader+wire.MaxData)},
	}
}

// reusable reports whether the applet, which is idle, may get another program.
func (k *kept) reusable() bool {
	return !k.bound && k.turns < maxTurns && k.used <= min(reuseCPU, k.limits.CPU/reuseShare) &&
		k.alone <= reuseMemory && k.data <= k.freshData()
}

// learn limits an applet and gives it a program, in this order: the program is not trusted. An error means that it is
// of no use.
func (k *kept) learn(key string, l jail.Limits, spec appletSpec) error {
	if k.turns == 0 {
		_, k.born = used(k.task.Pid())
	}
	k.key, k.limits = key, l.Hard()
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	if len(text) > frameMax {
		return fmt.Errorf("the arguments take %d bytes", len(text))
	}
	if err := k.task.Limit(l); err != nil {
		return err
	}
	return k.tell(text)
}

// forget takes its program from the applet, which from now on takes no input before it has another one.
func (k *kept) forget() error {
	k.key = ""
	return k.tell(nil)
}

func (k *kept) tell(spec []byte) error {
	// It may still read, and drop, what was left of the input before.
	if err := k.in.SetWriteDeadline(time.Now().Add(settleTime)); err != nil {
		return err
	}
	_, err := k.send.write(frameSpec, spec)
	return err
}

// begin gives the applet an input: p is the command that runs on it. exits gets p when it has been served, or when the
// applet has ended.
func (k *kept) begin(p *process, exits chan<- *process) ends {
	_ = k.in.SetWriteDeadline(time.Time{}) // a pipe has deadlines
	k.whole, k.torn = false, false
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now, k.exits = p, exits
	p.task, p.before, p.kills = k.task, k.used, k.kills
	p.id.Store(int64(k.task.Pid()))
	return ends{in: keptInput{k, p}, stdin: k.in, out: keptOutput{k, p}}
}

// reads reports whether the applet has its input open still, which the end of the process closes first.
func (k *kept) reads() bool {
	conn, err := k.in.SyscallConn()
	if err != nil {
		return false
	}
	open := false
	err = conn.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd)}}
		_, err := unix.Poll(p, 0)
		open = err == nil && p[0].Revents&unix.POLLERR == 0
	})
	return err == nil && open
}

func (k *kept) serves(p *process) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now == p
}

// clock returns the processor time that the process has used since it was started.
func (k *kept) clock() time.Duration {
	select {
	case <-k.task.done:
		return k.task.state.CPU
	default:
	}
	// The clock of another process, see clock_getcpuclockid(3) and the kernel's posix-timers.h.
	const scheduled = 2
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^k.task.Pid()<<3|scheduled), &t); err != nil {
		return 0 // it has just ended
	}
	return time.Duration(t.Nano())
}

// served takes note of the status of the present input.
func (k *kept) served(p *process, status int) {
	// A feeder that still writes must not wait for ever for an applet that does not read on.
	_ = k.in.SetWriteDeadline(time.Now().Add(settleTime))
	used := k.clock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now != p {
		return
	}
	p.served, p.status, p.spent = true, status, max(0, used-p.before)
	k.now, k.used = nil, max(used, k.used)
	k.exits <- p
}

// lost waits for the end of the process and reports the present input, unless that was done before.
func (k *kept) lost(p *process) {
	<-k.task.done
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now != p {
		return
	}
	p.spent = max(0, k.clock()-p.before)
	_, _ = p.stderr.Write([]byte(k.task.stderr.text())) // never fails
	k.now = nil
	k.exits <- p
}

// hangUp ends the applet because the output of p has no reader.
func (k *kept) hangUp(p *process) {
	k.mu.Lock()
	working := k.now == p
	if working {
		p.unread = true
	}
	k.mu.Unlock()
	if working {
		k.kill()
		go k.lost(p)
	}
}

func (k *kept) kill() { k.task.Kill() }

// end ends the process and returns when it is gone.
func (k *kept) end() {
	k.kill()
	<-k.task.done
	closeAll(k.in, k.out)
}

// settle completes what was sent of an input that was served, whose pumps have ended. It reports whether the applet can
// take another one, of c or of another command.
func (k *kept) settle(c wire.Command, memory int64) bool {
	if !k.whole && !k.torn {
		_, err := k.send.write(frameEnd, nil) // the applet drops what it has not read
		k.torn = err != nil
	}
	// RLIMIT_CPU and RLIMIT_DATA are those of the process: the next input must find as much of both as it may use. With
	// files it has no next input, since it reads those instead and its key does not name them.
	k.alone, k.data = used(k.task.Pid())
	again := c.Each && len(c.Files) == 0 && k.used <= c.Timeout && k.data <= max(memory/keptShare, k.freshData())
	if k.torn || !again && !k.reusable() {
		return false
	}
	return c.Check == nil || k.task.Limit(k.limits) == nil // a check has lower ones
}

// A keptInput is where an input is written. Close ends it.
type keptInput struct {
	k *kept
	p *process
}

func (i keptInput) Write(b []byte) (int, error) {
	if !i.k.serves(i.p) {
		return 0, os.ErrClosed
	}
	n, err := i.k.send.write(frameData, b)
	i.k.torn = i.k.torn || err != nil
	return n, err
}

// Close is called by the feeder at the end of the input. From elsewhere it is called when the input is over, and does
// nothing.
func (i keptInput) Close() error {
	if !i.k.serves(i.p) || i.k.whole || i.k.torn {
		return nil
	}
	_, err := i.k.send.write(frameEnd, nil)
	i.k.whole, i.k.torn = err == nil, err != nil
	return err
}

// A keptOutput is what the applet says of an item.
type keptOutput struct {
	k *kept
	p *process
}

func (o keptOutput) Read(b []byte) (int, error) {
	for o.k.serves(o.p) {
		n, err := o.read(b)
		if n > 0 {
			return n, nil
		}
		if err != nil {
			o.k.kill() // also one that has closed its output, or does not keep to the protocol
			o.k.lost(o.p)
		}
	}
	return 0, io.EOF
}

// read handles one frame, or the rest of one. It returns 0 bytes where that was not output.
func (o keptOutput) read(b []byte) (int, error) {
	f := &o.k.receive
	if f.left == 0 {
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	switch f.kind {
	case frameData:
		return f.Read(b)
	case frameMessage:
		n, err := f.Read(b)
		o.say(b[:n])
		return 0, err
	case frameStatus:
		status, err := f.status()
		if err == nil {
			o.k.served(o.p, status)
		}
		return 0, err
	}
	return 0, errFrames
}

func (o keptOutput) say(message []byte) {
	o.k.mu.Lock()
	defer o.k.mu.Unlock()
	if o.k.now == o.p {
		_, _ = o.p.stderr.Write(message) // never fails
	}
}

// Close says that the output has no reader any more. It may be called at any time.
func (o keptOutput) Close() error {
	o.k.hangUp(o.p)
	return nil
}
