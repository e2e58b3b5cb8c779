package memory

import (
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// NoLimit is what [Machine] returns where nothing is known.
const NoLimit = 1 << 62

// Machine returns the memory that this process may use: of the machine, or of its control group and the groups above. root
// is the root of the file system.
func Machine(root string) int64 {
	least := int64(NoLimit)
	read := func(parts ...string) string {
		text, _ := os.ReadFile(path.Join(root, path.Join(parts...))) // a file that is not there limits nothing
		return string(text)
	}
	take := func(text string) {
		if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil && n > 0 {
			least = min(least, n)
		}
	}
	if _, total, ok := strings.Cut(read("proc/meminfo"), "MemTotal:"); ok {
		kib, _, _ := strings.Cut(total, " kB")
		take(kib + "000") // approximately
	}
	for line := range strings.Lines(read("proc/self/cgroup")) {
		// hierarchy:controllers:path; version 2 has no controllers
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 || fields[1] != "" && !slices.Contains(strings.Split(fields[1], ","), "memory") {
			continue
		}
		dir, file := "sys/fs/cgroup", "memory.max"
		if fields[1] != "" {
			dir, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			take(read(dir, group, file))
			if group == "/" {
				break
			}
		}
	}
	return least
}
