//go:build linux

package worker

import (
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// A meter adds up what the commands of all chains of the worker use, and says which of them has to go when they use
// more than a run may.
type meter struct {
	inputs *inputs   // which share the disk with them
	idle   *idlePool // which share memory with them, and go first

	mu      sync.Mutex
	members map[*process]*member
	looked  time.Time
	looks   int
}

// A member is one command that the meter watches.
type member struct {
	memory, disk int64 // when it was last looked at
	files        int
	failure      *wire.Failure // why it has to go
}

// enter adds a command, unless there would be more than the budget allows. What needs no process is nothing to watch.
func (m *meter) enter(p *process, b wire.Budget) *wire.Failure {
	if p.tool == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.idle.count(); b.Processes > 0 && n > 0 && len(m.members)+n >= b.Processes {
		m.idle.drain()
	}
	if b.Processes > 0 && len(m.members) >= b.Processes {
		return &wire.Failure{Command: p.index, Reason: wire.ProcessLimit, Limit: int64(b.Processes), Worker: true}
	}
	if m.members == nil {
		m.members = map[*process]*member{}
	}
	m.members[p] = &member{}
	return nil
}

func (m *meter) leave(p *process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.members, p)
}

// count returns how many commands there are.
func (m *meter) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.members)
}

// check looks at everything, unless another chain has just done that, and returns why p has to go, nil if it may stay.
func (m *meter) check(p *process, chain wire.Chain) *wire.Failure {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.Sub(m.looked) >= tick/2 {
		m.looked = now
		m.look(chain.Worker)
	}
	it := m.members[p]
	switch {
	case it == nil:
		return nil
	case it.failure == nil && it.disk > chain.Disk:
		it.failure = &wire.Failure{Command: p.index, Reason: wire.DiskLimit}
	}
	return it.failure
}

func (m *meter) look(b wire.Budget) {
	var memory int64
	for p, it := range m.members {
		var data int64
		it.memory, data = used(p.pid())
		p.sawMemory(data)
		memory += it.memory
	}
	if more := m.idle.memory(); b.Memory > 0 && more > 0 && memory+more > b.Memory {
		m.idle.drain()
	}
	if b.Memory > 0 && memory > b.Memory {
		m.condemn(wire.MemoryLimit, b.Memory, func(it *member) int64 { return it.memory })
	}
	if m.looks++; m.looks%diskTicks != 0 {
		return
	}
	var disk int64
	files := 0
	for p, it := range m.members {
		if p.scratch != "" {
			it.disk, it.files = diskUsed(p.scratch)
			disk, files = disk+it.disk, files+it.files
		}
	}
	if b.Disk > 0 && disk > 0 && disk+m.inputs.size() > b.Disk {
		m.condemn(wire.DiskLimit, b.Disk, func(it *member) int64 { return it.disk })
	} else if b.Files > 0 && files > b.Files {
		m.condemn(wire.FileLimit, int64(b.Files), func(it *member) int64 { return int64(it.files) })
	}
}

// condemn picks the member that uses most. While one is on its way out, the others need not go.
func (m *meter) condemn(reason wire.Reason, limit int64, uses func(*member) int64) {
	var most *member
	var its *process
	for p, it := range m.members {
		if it.failure != nil {
			return
		}
		if most == nil || uses(it) > uses(most) {
			most, its = it, p
		}
	}
	most.failure = &wire.Failure{Command: its.index, Reason: reason, Limit: limit, Worker: true}
}

// used returns the bytes of memory that a process alone has, and the bytes that count for its limit, touched or not; 0
// if it is gone. See proc_pid_statm(5).
func used(pid int) (alone, data int64) {
	if pid == 0 {
		return 0, 0
	}
	f := openStatm(pid)
	defer f.Close() // nil if it is gone: an error that does no harm
	return usedBy(f)
}

// openStatm opens what the kernel says of a process's memory. It is nil if the process is gone.
func openStatm(pid int) *os.File {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return nil
	}
	return f
}

// usedBy is used for a process whose file is open.
func usedBy(statm *os.File) (alone, data int64) {
	if statm == nil {
		return 0, 0
	}
	var text [128]byte
	n, err := statm.ReadAt(text[:], 0)
	if err != nil && err != io.EOF {
		return 0, 0
	}
	fields := strings.Fields(string(text[:n]))
	if len(fields) < 6 {
		return 0, 0
	}
	pages := func(i int) int64 {
		n, _ := strconv.ParseInt(fields[i], 10, 64) // the kernel writes numbers
		return n * int64(os.Getpagesize())
	}
	return pages(1) - pages(2), pages(5)
}
