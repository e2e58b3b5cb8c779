package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcsh-dev/mcsh/workspace"
)

// TestSaveFull fills the disk: the file and its mirror are as they were, and nothing is left behind.
func TestSaveFull(t *testing.T) {
	root := t.TempDir()
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(root, syscall.MNT_DETACH) })
	d := open(t, root)
	if _, err := save(t, d, "a", "as it was\n", workspace.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	before, count := files(t, root), countOf(t, root)
	for _, size := range []int{2 << 20, 600 << 10} { // too large itself, and together with its mirror
		for _, behind := range []bool{false, true} {
			_, err := save(t, d, "a", strings.Repeat("x", size), workspace.SaveOptions{Append: behind})
			if err == nil || !strings.Contains(err.Error(), "the disk is full") || !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%d bytes, append %v: %v", size, behind, err)
			}
			if after := files(t, root); len(after) != len(before) || after["a"] != before["a"] || after[".mcsh/audit/a"] != before[".mcsh/audit/a"] {
				t.Errorf("%d bytes, append %v: %d files, was %d", size, behind, len(after), len(before))
			}
			if got := countOf(t, root); got != count {
				t.Errorf("%d bytes, append %v: %d bytes counted, want %d as before", size, behind, got, count)
			}
		}
	}
	if list, err := os.ReadDir(filepath.Join(root, ".mcsh/tmp")); err != nil || len(list) > 0 {
		t.Errorf("%d drafts are left, %v", len(list), err)
	}
}
