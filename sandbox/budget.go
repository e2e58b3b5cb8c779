package sandbox

import (
	"cmp"
	"fmt"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// The most that one command may take. Memory is private memory; Disk is what sort and tac keep on disk.
const (
	Memory = 512 << 20
	Disk   = 1 << 30
)

// A Budget is what all commands of one run may take together, so that a run that takes much fails by itself and not
// the others.
type Budget struct {
	Memory    int64 // bytes: a share of what the driver's machine has, or twice [Memory], if zero
	Disk      int64 // bytes: [Disk] if zero
	Files     int   // on disk: 4096 if zero
	Processes int   // at a time: 512 if zero
}

const (
	leastMemory      = 64 << 20 // of a run: nothing works with less
	defaultFiles     = 4096
	defaultProcesses = 512
)

// withDefaults fills in what is not set. memory is what all runs may take, 0 if that is not known.
func (b Budget) withDefaults(memory int64, runs int) Budget {
	if b.Memory <= 0 {
		b.Memory = 2 * Memory
		if memory > 0 {
			b.Memory = max(memory/int64(runs), leastMemory)
		}
	}
	if b.Disk <= 0 {
		b.Disk = Disk
	}
	if b.Files <= 0 {
		b.Files = defaultFiles
	}
	if b.Processes <= 0 {
		b.Processes = defaultProcesses
	}
	return b
}

// check returns the limits of a check. Memory that somebody has asked for must be in the budget; the default is lowered.
func (b Budget) check(o Options) (wire.Check, error) {
	if o.CheckMemory > b.Memory {
		return wire.Check{}, fmt.Errorf("limit check-memory: %d bytes are more than the %d that the commands of one run may take together: lower it with --limit check-memory=SIZE", o.CheckMemory, b.Memory)
	}
	return wire.Check{CPU: cmp.Or(o.Check, DefaultCheck), Memory: min(cmp.Or(o.CheckMemory, DefaultCheckMemory), b.Memory)}, nil
}

// chain returns an empty chain with its limits.
func (b Budget) chain() wire.Chain {
	return wire.Chain{
		Memory: min(Memory, b.Memory), Disk: min(Disk, b.Disk),
		Worker: wire.Budget{Memory: b.Memory, Disk: b.Disk, Files: b.Files, Processes: b.Processes},
	}
}
