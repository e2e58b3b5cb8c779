//go:build linux

package worker

import (
	"cmp"
	"maps"
	"os"
	"slices"
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

	mu      sync.Mutex // not held while the kernel is asked, or a process ends
	members map[*process]bool
	looking bool // some chain is at it
	looked  time.Time
	looks   int
}

// A reading is what a command has taken.
type reading struct {
	memory, disk int64
	files        int
}

// enter adds a command, unless there would be more than the budget allows. A command without a process is not watched.
func (m *meter) enter(p *process, b wire.Budget) *wire.Failure {
	if p.tool == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.Processes > 0 && len(m.members) >= b.Processes {
		return &wire.Failure{Command: p.index, Reason: wire.ProcessLimit, Limit: int64(b.Processes), Worker: true}
	}
	if m.members == nil {
		m.members = map[*process]bool{}
	}
	m.members[p] = true
	return nil
}

// makeWay is for a command that has entered and is about to start a process: applets that wait are gone when it returns,
// if there would be too many processes with them. A command that gets one of them needs no other process.
func (m *meter) makeWay(b wire.Budget) {
	if b.Processes > 0 && m.count()+m.idle.count() > b.Processes {
		m.idle.drain()
	}
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
func (m *meter) check(p *process, b wire.Budget) *wire.Failure {
	m.look(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	return p.condemned
}

func (m *meter) look(b wire.Budget) {
	members, disk, due := m.begin()
	if !due {
		return
	}
	for _, p := range members {
		p.measure(disk)
	}
	idle, inputs := m.idle.memory(), m.inputs.used.Load()
	if m.judge(members, disk, idle, inputs, b) {
		m.idle.discard(m.idle.takeAll()...)
	}
}

// begin returns the members, and whether it is time to look at their disks too, and at them at all.
func (m *meter) begin() (members []*process, disk, due bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.looking || now.Sub(m.looked) < tick/2 {
		return nil, false, false
	}
	m.looking, m.looked = true, now
	m.looks++
	return slices.Collect(maps.Keys(m.members)), m.looks%diskTicks == 0, true
}

// measure takes note of what the process has taken.
func (p *process) measure(disk bool) {
	var data int64
	p.taken.memory, data = used(p.pid())
	p.sawMemory(data)
	if disk && p.scratch != "" {
		p.taken.disk, p.taken.files = diskUsed(p.scratch)
	}
}

// judge condemns a member that has taken too much, or that has taken most where all take too much together. It reports
// whether the applets that wait have to go.
func (m *meter) judge(members []*process, disk bool, idle, inputs int64, b wire.Budget) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looking = false
	members = slices.DeleteFunc(members, func(p *process) bool { return !m.members[p] })
	var sum reading
	for _, p := range members {
		sum.memory += p.taken.memory
		sum.disk += p.taken.disk
		sum.files += p.taken.files
	}
	if b.Memory > 0 && sum.memory > b.Memory {
		condemn(members, wire.MemoryLimit, b.Memory, func(r reading) int64 { return r.memory })
	}
	if disk && b.Disk > 0 && sum.disk > 0 && sum.disk+inputs > b.Disk {
		condemn(members, wire.DiskLimit, b.Disk, func(r reading) int64 { return r.disk })
	} else if disk && b.Files > 0 && sum.files > b.Files {
		condemn(members, wire.FileLimit, int64(b.Files), func(r reading) int64 { return int64(r.files) })
	}
	for _, p := range members {
		if p.condemned == nil && p.taken.disk > p.disk {
			p.condemned = &wire.Failure{Command: p.index, Reason: wire.DiskLimit}
		}
	}
	return b.Memory > 0 && idle > 0 && sum.memory+idle > b.Memory
}

// condemn picks the member that uses most. While one is on its way out, the others need not go.
func condemn(members []*process, reason wire.Reason, limit int64, uses func(reading) int64) {
	if slices.ContainsFunc(members, func(p *process) bool { return p.condemned != nil }) {
		return
	}
	most := slices.MaxFunc(members, func(a, b *process) int { return cmp.Compare(uses(a.taken), uses(b.taken)) })
	most.condemned = &wire.Failure{Command: most.index, Reason: reason, Limit: limit, Worker: true}
}

// used returns the bytes of memory that a process alone has, and the bytes that count for its limit, touched or not; 0
// if it is gone. See proc_pid_statm(5).
func used(pid int) (alone, data int64) {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	fields := strings.Fields(string(text))
	if len(fields) < 6 {
		return 0, 0
	}
	pages := func(i int) int64 {
		n, _ := strconv.ParseInt(fields[i], 10, 64) // the kernel writes numbers
		return n * int64(os.Getpagesize())
	}
	return pages(1) - pages(2), pages(5)
}
