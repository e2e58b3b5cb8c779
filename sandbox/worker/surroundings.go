//go:build linux

package worker

import (
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// Files of control groups, version 1 and version 2, as a container with a namespace of its own sees them.
var (
	memoryFiles = []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}
	pidsFiles   = []string{"/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"}
	oomFiles    = []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}
)

// unlimited is a limit that is none: version 1 says so with a number next to the largest.
const unlimited = 1 << 60

// surroundings looks at what holds this process from outside. A limit that cannot be seen counts as not there.
func surroundings() wire.Surroundings {
	s := wire.Surroundings{
		Memory: limit(memoryFiles), Processes: limit(pidsFiles),
		Capabilities: capabilities(), NoNetwork: onlyLoopback(),
	}
	var st unix.Statfs_t
	s.ReadOnlyRoot = unix.Statfs("/", &st) == nil && st.Flags&unix.ST_RDONLY != 0
	return s
}

// limit returns the number in the first file that is there, 0 if there is no limit.
func limit(files []string) int64 {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil || n >= unlimited { // "max"
			return 0
		}
		return n
	}
	return 0
}

// oomKills returns how many processes of this control group the kernel has killed because memory was used up, 0 where
// it does not say.
func oomKills() int64 {
	var text [1 << 10]byte
	n, err := oomFile().ReadAt(text[:], 0)
	if err != nil && err != io.EOF {
		return 0
	}
	return field(string(text[:n]), "oom_kill ")
}

// oomFile stays open, as each chain begins with a look at it; nil where there is none.
var oomFile = sync.OnceValue(func() *os.File {
	for _, name := range oomFiles {
		if f, err := os.Open(name); err == nil {
			return f
		}
	}
	return nil
})

func field(text, name string) int64 {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64) // the kernel writes numbers
			return n
		}
	}
	return 0
}

// capabilities returns the set of capabilities that this process has or could get, all of them if it cannot be read.
func capabilities() uint64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return ^uint64(0)
	}
	var all uint64
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb":
			n, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			if err != nil {
				return ^uint64(0)
			}
			all |= n
		}
	}
	return all
}

// onlyLoopback reports whether there is no network interface but the one that leads nowhere.
func onlyLoopback() bool {
	text, err := os.ReadFile("/proc/self/net/dev")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) != "lo" {
			return false
		}
	}
	return true
}
