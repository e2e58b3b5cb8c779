//go:build linux

package local

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLimitFiles(t *testing.T) {
	got := limitFiles("12:memory:/docker/ab\n3:cpu,cpuacct:/x\n0::/user.slice\nnonsense\n")
	want := []string{
		"/sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes", "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
		"/sys/fs/cgroup/memory/memory.limit_in_bytes",
		"/sys/fs/cgroup/user.slice/memory.max", "/sys/fs/cgroup/memory.max",
		"/sys/fs/cgroup/memory.max", // of what is no line of this file: no group but the root is known
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if m := memory(); m < 1<<20 {
		t.Errorf("this process may take %d bytes, want more", m)
	}
}
