package memory_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/mcsh-dev/mcsh/internal/memory"
)

// TestMachine: the least of the machine's memory and those of the control groups counts.
func TestMachine(t *testing.T) {
	const gib = 1 << 30
	const machine = "-- proc/meminfo --\nMemTotal:        8000000 kB\nMemFree: 1 kB\n"
	for name, tt := range map[string]struct {
		files string
		want  int64
	}{
		"nothing is known":        {"", 1 << 62},
		"a machine":               {machine, 8_000_000_000},
		"a group without a limit": {machine + "-- proc/self/cgroup --\n0::/a\n-- sys/fs/cgroup/a/memory.max --\nmax\n", 8_000_000_000},
		"a group":                 {machine + "-- proc/self/cgroup --\n0::/a/b\n-- sys/fs/cgroup/a/b/memory.max --\n1073741824\n", gib},
		"a group around it":       {machine + "-- proc/self/cgroup --\n0::/a/b\n-- sys/fs/cgroup/a/memory.max --\n1073741824\n-- sys/fs/cgroup/a/b/memory.max --\n2147483648\n", gib},
		"a namespace":             {machine + "-- proc/self/cgroup --\n0::/\n-- sys/fs/cgroup/memory.max --\n1073741824\n", gib},
		"outside of a namespace":  {machine + "-- proc/self/cgroup --\n0::/../../x\n-- sys/fs/cgroup/memory.max --\n1073741824\n", gib},
		"version 1":               {machine + "-- proc/self/cgroup --\n3:cpu,cpuacct:/c\n2:memory:/a\n-- sys/fs/cgroup/memory/memory.limit_in_bytes --\n9223372036854771712\n-- sys/fs/cgroup/memory/a/memory.limit_in_bytes --\n1073741824\n", gib},
		"text that is no number":  {"-- proc/meminfo --\nMemTotal: much kB\n", 1 << 62},
	} {
		root := t.TempDir()
		for _, f := range txtar.Parse([]byte(tt.files)).Files {
			file := filepath.Join(root, filepath.FromSlash(f.Name))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := memory.Machine(root); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}
