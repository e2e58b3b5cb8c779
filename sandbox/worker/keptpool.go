//go:build linux

package worker

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

const (
	// maxIdle is how many applets wait for an input or a program: twice what one for_each runs side by side, so that
	// two that feed each other keep theirs.
	maxIdle = 8

	// maxSpares is how many of them wait for the next run. One takes a few megabytes.
	maxSpares = 4

	// spareDelay is how long a worker waits before it starts an applet that no command needs yet: where runs follow each
	// other closely, that start would keep a run from its processor.
	spareDelay = 20 * time.Millisecond
)

// An idlePool starts the processes of linked-in programs, and holds those that wait for an input or a program. Their start
// takes longer than what most of them are to do, so one is started before it is needed.
type idlePool struct {
	start func(files []*os.File) (*kept, error)

	mu     sync.Mutex // not held while a process ends: one may take long to die
	idle   []*kept    // the one that has waited longest first
	closed bool
	used   bool // by the present run

	starting sync.WaitGroup // those that no command needs yet
	ending   sync.WaitGroup // those that were discarded
}

// starter returns how applets are started. files are the descriptors of one after standard error.
func (s hostInfo) starter(prefix []string) func(files []*os.File) (*kept, error) {
	argv := slices.Concat([]string{processName}, prefix, []string{roleApplet, strconv.Itoa(os.Getpid())})
	own := sync.OnceValues(s.own)
	return func(files []*os.File) (*kept, error) {
		from, err := own()
		if err != nil {
			return nil, err
		}
		command := jail.Command{Argv: argv, Env: appletEnvironment}
		for _, f := range files {
			command.Files = append(command.Files, int(f.Fd()))
		}
		kills := oomKills()
		t, err := connect(from.Start, command)
		if err != nil {
			return nil, err
		}
		return newKept(t, len(files) > 0, kills), nil
	}
}

// spare sees to it that an applet waits, in the background, unless the run has one. One that does not start is not missed.
func (i *idlePool) spare() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed || i.used || len(i.idle) > 0 {
		return
	}
	i.starting.Go(func() {
		if k, err := i.start(nil); err == nil {
			i.put(k)
		}
	})
}

// keptKey tells the commands apart that an applet can be kept for. It is asked for with every input.
func keptKey(c wire.Command, memory int64) string {
	return fmt.Sprintf("%d %d %d %t %q %q %q", memory, c.Timeout, c.Set, c.Batch > 0, c.Name, c.Argv, c.Inputs)
}

// has returns an applet that waits and has the program of that key, nil if there is none.
func (i *idlePool) has(key string) *kept {
	return i.take(func(k *kept) bool { return k.key == key })
}

// free returns an applet that waits, can get another program and has these limits or none yet, nil if there is none.
func (i *idlePool) free(limits jail.Limits) *kept {
	if k := i.take(func(k *kept) bool { return k.limits == limits && k.reusable() }); k != nil {
		return k
	}
	i.starting.Wait() // a second start would take longer; since take no further one begins
	return i.take(func(k *kept) bool { return k.turns == 0 && !k.bound })
}

// take returns the applet that has waited longest of those that fit.
func (i *idlePool) take(fits func(k *kept) bool) *kept {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.used = true
	for {
		n := slices.IndexFunc(i.idle, fits)
		if n < 0 {
			return nil
		}
		k := i.idle[n]
		i.idle = slices.Delete(i.idle, n, n+1)
		if k.reads() {
			return k
		}
		i.discard(k) // it has died while it waited
	}
}

// renew has up to maxSpares applets, those that have waited least, forget what they were, ends the others and returns when
// those are gone. Where a run has used applets one waits for the next. Nothing else uses the pool meanwhile.
func (i *idlePool) renew() {
	var left []*kept
	for _, k := range slices.Backward(i.takeAll()) {
		if len(left) == maxSpares || !k.reusable() || k.forget() != nil {
			i.discard(k)
			continue
		}
		left = append(left, k)
	}
	slices.Reverse(left)
	i.mu.Lock()
	used := i.used
	i.idle, i.used = append(left, i.idle...), false // one may have come meanwhile
	i.mu.Unlock()
	if used {
		i.spare()
	}
	i.ending.Wait()
}

// put adds one, and ends the one that has waited longest where they are too many.
func (i *idlePool) put(k *kept) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.idle = append(i.idle, k)
	if len(i.idle) > maxIdle {
		i.discard(i.idle[0])
		i.idle = slices.Delete(i.idle, 0, 1)
	}
}

// count returns how many wait.
func (i *idlePool) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.idle)
}

// memory returns the bytes of memory that those have that wait.
func (i *idlePool) memory() (sum int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, k := range i.idle {
		alone, _ := used(k.task.Pid())
		sum += alone
	}
	return sum
}

func (i *idlePool) takeAll() []*kept {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := i.idle
	i.idle = nil
	return all
}

// discard ends applets that are not in the pool any more, and does not wait for that.
func (i *idlePool) discard(all ...*kept) {
	for _, k := range all {
		k.kill()
		i.ending.Go(k.end)
	}
}

// drain ends all of them and returns when they are gone.
func (i *idlePool) drain() {
	all := i.takeAll()
	i.discard(all...)
	for _, k := range all {
		<-k.task.done
	}
}

// close ends all of them, and those that are being started. When it returns they, and all that were discarded, are gone:
// only this process can wait for them.
func (i *idlePool) close() {
	i.mu.Lock()
	i.closed = true
	i.mu.Unlock()
	i.starting.Wait()
	i.discard(i.takeAll()...)
	i.ending.Wait()
}
