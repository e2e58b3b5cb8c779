//go:build linux

package worker

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// A kept applet is one jailed process that runs a command for many items, one after another: it is started, its program
// compiled and its named inputs read once. The input of a command that is not part of a for_each is one item. Nothing
// of an item is left when the next one comes but what the Go runtime has not given back. It may get another program,
// see reuse.go.
type kept struct {
	key     string      // of the command that it has; empty: none
	limits  jail.Limits // of the process, for all that it does
	bound   bool        // it has named inputs, and so no other program
	items   bool        // a for_each may have more items for it
	turns   int         // programs that it has had, and commands that are one item
	alone   int64       // bytes of memory that it has, after the last item
	data    int64       // bytes that count for its limit, touched or not; likewise
	born    int64       // the same before the first item
	task    *task       // its standard error is what the runtime says when it fails
	in, out *os.File
	kills   int64       // of the kernel for want of memory, when it was started
	statm   *os.File    // what memory it has; nil where that cannot be seen
	send    frameWriter // to in; for the pump that feeds the item
	receive frameReader // of out; for the pump that takes what it says
	lane    bool        // a lane uses it, which sends whole items, also before it is their turn

	// Of the present item; for the pump that feeds it, and after the pump for who settles it.
	whole bool // the item has been sent to its end
	torn  bool // a frame was not sent to its end

	mu    sync.Mutex
	item  *process // nil between items
	exits chan<- *process
	used  time.Duration // of the processor, at the end of the last item
}

// settleTime is how long an applet may take to read what was sent of an item that it has done with.
const settleTime = time.Second

// keptShare is the part of an applet's limit of memory that it may have taken, at most, when it gets a next item: the
// heap of the ones before is used again, but not given back.
const keptShare = 4

// startData is more than what the Go runtime takes at its start, which counts for the limit: 64 MiB of heap and what it needs
// to know of them. With cgo each thread adds a stack of 8 MiB: laterData is for those that come after the start, and less
// than the next 64 MiB of heap.
const (
	startData = 96 << 20
	laterData = 40 << 20
)

// freshData is how much may count for the limit of an applet that has as much left as a new process.
func (k *kept) freshData() int64 { return max(startData, k.born+laterData) }

// keep starts an applet with the command that p was given, and returns it without an item.
func keep(p *process) (*kept, error) {
	kills, limits, bound := oomKills(), p.how.command.Limits, len(p.how.inputs) > 0
	t, err := p.how.start()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.tool.Name, err)
	}
	statm := openStatm(t.Pid())
	_, born := usedBy(statm)
	return &kept{
		key: p.key, limits: limits, bound: bound, turns: 1, items: p.items, task: t.task, in: t.in, out: t.out, kills: kills, statm: statm, born: born,
		send: frameWriter{w: t.in}, receive: frameReader{r: bufio.NewReaderSize(t.out, frameHeader+frameMax)},
	}, nil
}

// begin gives the applet an item: p is the command that runs on it. exits gets p when it has been served, or when the
// applet has ended.
func (k *kept) begin(p *process, exits chan<- *process) ends {
	if !k.lane {
		_ = k.in.SetWriteDeadline(time.Time{}) // a pipe has deadlines
	}
	k.whole, k.torn = false, false
	k.mu.Lock()
	defer k.mu.Unlock()
	k.item, k.exits = p, exits
	p.task, p.before, p.kills = k.task, k.used, k.kills
	p.id.Store(int64(k.task.Pid()))
	return ends{in: itemInput{k, p}, stdin: k.in, out: itemOutput{k, p}}
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
	return k.item == p
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

// spending returns the processor time that the present item has used so far, 0 if it is not that of p.
func (k *kept) spending(p *process) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.item != p {
		return 0
	}
	return k.clock() - p.before
}

// served takes note of the status of the present item.
func (k *kept) served(p *process, status int) {
	if !k.lane {
		// A feeder that still writes must not wait for ever for an applet that does not read on.
		_ = k.in.SetWriteDeadline(time.Now().Add(settleTime))
	}
	now := k.used // what a lane's items have used that are answered together is that of the last of them: to ask costs a call
	if !k.lane || k.receive.r.Buffered() == 0 {
		now = k.clock()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.item != p {
		return
	}
	p.served, p.status, p.spent = true, status, max(0, now-p.before)
	k.item, k.used = nil, max(now, k.used)
	k.exits <- p
}

// lost waits for the end of the process and reports the present item, unless that was done before.
func (k *kept) lost(p *process) {
	<-k.task.done
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.item != p {
		return
	}
	p.spent = max(0, k.clock()-p.before)
	_, _ = p.stderr.Write([]byte(k.task.stderr.text())) // never fails
	k.item = nil
	k.exits <- p
}

// hangUp ends the applet because nobody reads what it says of p.
func (k *kept) hangUp(p *process) {
	k.mu.Lock()
	working := k.item == p
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
	closeAll(k.in, k.out, k.statm)
}

// settle completes what was sent of an item that was served, whose pumps have ended. It reports whether the applet can
// take another one.
func (k *kept) settle(c wire.Command, memory int64) bool {
	if !k.whole && !k.torn {
		_, err := k.send.write(frameEnd, nil) // the applet drops what it has not read
		k.torn = err != nil
	}
	// RLIMIT_CPU and RLIMIT_DATA are those of the process: the next item must find as much of both as it may use.
	k.alone, k.data = usedBy(k.statm)
	return !k.torn && k.used <= c.Timeout && k.data <= max(memory/keptShare, k.freshData())
}

// An itemInput is where an item is written. Close ends it.
type itemInput struct {
	k *kept
	p *process
}

func (i itemInput) Write(b []byte) (int, error) {
	if !i.k.serves(i.p) {
		return 0, os.ErrClosed
	}
	n, err := i.k.send.write(frameData, b)
	i.k.torn = i.k.torn || err != nil
	return n, err
}

// Close is called by the feeder at the end of the item. From elsewhere it is called when the item is over, and does
// nothing.
func (i itemInput) Close() error {
	if !i.k.serves(i.p) || i.k.whole || i.k.torn {
		return nil
	}
	_, err := i.k.send.write(frameEnd, nil)
	i.k.whole, i.k.torn = err == nil, err != nil
	return err
}

// An itemOutput is what the applet says of an item.
type itemOutput struct {
	k *kept
	p *process
}

func (o itemOutput) Read(b []byte) (int, error) {
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
func (o itemOutput) read(b []byte) (int, error) {
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

func (o itemOutput) say(message []byte) {
	o.k.mu.Lock()
	defer o.k.mu.Unlock()
	if o.k.item == o.p {
		_, _ = o.p.stderr.Write(message) // never fails
	}
}

// Close says that nobody reads on. It may be called at any time.
func (o itemOutput) Close() error {
	o.k.hangUp(o.p)
	return nil
}
