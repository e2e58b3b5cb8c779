//go:build linux

package local

import (
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memory returns how many bytes of memory this process and its children may take: what the machine has, or less where
// a control group on the way to this process says so.
func memory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	total := int64(info.Totalram) * int64(info.Unit)
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return total
	}
	for _, file := range limitFiles(string(groups)) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // within a container the groups above are not there
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil { // not "max"
			total = min(total, n)
		}
	}
	return total
}

// limitFiles lists the files that may hold a limit of memory, for the text of /proc/self/cgroup: a line for each
// hierarchy, "number:controllers:path", without a controller in version 2 (cgroups(7)).
func limitFiles(groups string) []string {
	var files []string
	for line := range strings.Lines(groups) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		root, name := "", ""
		switch controllers {
		case "":
			root, name = "/sys/fs/cgroup", "memory.max"
		case "memory":
			root, name = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
			files = append(files, path.Join(root, dir, name))
			if dir == "/" {
				break
			}
		}
	}
	return files
}
