//go:build linux

package jail

import (
	"cmp"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// nofile is how many descriptors a jailed process can have: numbers 0 to nofile-1.
const nofile = 63

// stack is the limit of the main thread's stack. It is set because some containers start without one.
const stack = 8 << 20

// Limits bound what one process uses. Zero means no limit of its own, except for File.
type Limits struct {
	CPU  time.Duration // processor time, rounded up to seconds; SIGXCPU then, SIGKILL a second later
	Data uint64        // bytes of private writable memory
	Soft uint64        // of Data, where less is enough for now: another call of Limit can raise it; 0: all of it
	File uint64        // bytes of one file; used only where there is a scratch directory
}

// Hard returns the limits without the one that can be raised.
func (l Limits) Hard() Limits {
	l.Soft = 0
	return l
}

// A limit is one of the kernel's, as it is to be set.
type limit struct {
	name     string
	resource int
	want     unix.Rlimit
}

// Limit sets limits of a process that runs, where they are not lower already. It can read them, but not set them.
func (p *Process) Limit(l Limits) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	return l.apply(p.pid)
}

// plan lists what a process of these limits gets, or keeps where the present hard limit is lower still; this process's
// limits are the present ones. RLIMIT_AS is left alone: it counts reserved address space, of which a Go program takes
// gigabytes.
func (l Limits) plan(writes bool) ([]limit, error) {
	cpu := uint64((l.CPU + time.Second - 1) / time.Second)
	file := uint64(0)
	if writes {
		file = l.File
	}
	list := []limit{
		{"core", unix.RLIMIT_CORE, unix.Rlimit{}},
		{"fsize", unix.RLIMIT_FSIZE, unix.Rlimit{Cur: file, Max: file}},
		{"stack", unix.RLIMIT_STACK, unix.Rlimit{Cur: stack, Max: stack}},
		{"nofile", unix.RLIMIT_NOFILE, unix.Rlimit{Cur: nofile, Max: nofile}},
	}
	if cpu > 0 {
		list = append(list, limit{"cpu", unix.RLIMIT_CPU, unix.Rlimit{Cur: cpu, Max: cpu + 1}})
	}
	if l.Data > 0 {
		list = append(list, limit{"data", unix.RLIMIT_DATA, unix.Rlimit{Cur: min(cmp.Or(l.Soft, l.Data), l.Data), Max: l.Data}})
	}
	for i := range list {
		var now unix.Rlimit
		if err := unix.Prlimit(0, list[i].resource, nil, &now); err != nil {
			return nil, fmt.Errorf("reading the limit of %s: %w", list[i].name, err)
		}
		w := &list[i].want
		w.Cur, w.Max = min(w.Cur, now.Max), min(w.Max, now.Max)
	}
	return list, nil
}

// apply sets the limits of a process, 0 for the calling one, where they are not lower already.
func (l Limits) apply(pid int) error {
	list, err := l.plan(false)
	if err != nil {
		return err
	}
	for _, lim := range list {
		// Prlimit and not Setrlimit: the Go runtime must not restore RLIMIT_NOFILE behind our back.
		if err := unix.Prlimit(pid, lim.resource, &lim.want, nil); err != nil {
			return fmt.Errorf("limiting %s to %d: %w", lim.name, lim.want.Max, err)
		}
	}
	return nil
}
