//go:build linux

package jail

import (
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
	File uint64        // bytes of one file; used only where there is a scratch directory
}

// apply sets the limits of the calling process. RLIMIT_AS is left alone: it counts reserved address space, of which a
// Go program takes gigabytes.
func (l Limits) apply(writes bool) error {
	cpu := uint64((l.CPU + time.Second - 1) / time.Second)
	file := uint64(0)
	if writes {
		file = l.File
	}
	for _, r := range []struct {
		name      string
		resource  int
		soft, max uint64
		set       bool
	}{
		{"core", unix.RLIMIT_CORE, 0, 0, true},
		{"cpu", unix.RLIMIT_CPU, cpu, cpu + 1, cpu > 0},
		{"fsize", unix.RLIMIT_FSIZE, file, file, true},
		{"stack", unix.RLIMIT_STACK, stack, stack, true},
		{"nofile", unix.RLIMIT_NOFILE, nofile, nofile, true},
		{"data", unix.RLIMIT_DATA, l.Data, l.Data, l.Data > 0},
	} {
		if !r.set {
			continue
		}
		if err := lower(r.resource, r.soft, r.max); err != nil {
			return fmt.Errorf("limiting %s to %d: %w", r.name, r.max, err)
		}
	}
	return nil
}

// lower sets a limit, or keeps the present hard limit where that is lower still.
func lower(resource int, soft, hard uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return err
	}
	want := unix.Rlimit{Cur: min(soft, now.Max), Max: min(hard, now.Max)}
	// Prlimit and not Setrlimit: the Go runtime must not restore RLIMIT_NOFILE behind our back.
	return unix.Prlimit(0, resource, &want, nil)
}
