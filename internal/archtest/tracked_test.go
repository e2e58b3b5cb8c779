//go:build !race

package archtest

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTracked: no tracked file is a program, or larger than 1 MiB: both stay in the history for good.
func TestTracked(t *testing.T) {
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("this is no clone")
	}
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	list := exec.Command(git, "ls-files", "-z")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Skipf("git ls-files: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if problem := unfit(filepath.Join(root, filepath.FromSlash(name))); problem != "" {
			t.Errorf("%s is tracked, and %s", name, problem)
		}
	}
}

// TestUnfit: what TestTracked finds.
func TestUnfit(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		want string
	}{
		"a program": {"\x7fELF\x02\x01", "is an ELF binary"},
		"large":     {strings.Repeat("x", maxTracked+1), "is larger than 1 MiB"},
		"at most":   {strings.Repeat("x", maxTracked), ""},
		"empty":     {"", ""},
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(c.data), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := unfit(path); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

const maxTracked = 1 << 20

// unfit says why a file may not be tracked; empty: it may, or is not in the work tree.
func unfit(path string) string {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	if info.Size() > maxTracked {
		return "is larger than 1 MiB"
	}
	f, err := os.Open(path)
	if err != nil {
		return "cannot be read: " + err.Error()
	}
	defer f.Close()
	head := make([]byte, 4)
	if _, err := io.ReadFull(f, head); err == nil && bytes.Equal(head, []byte("\x7fELF")) {
		return "is an ELF binary"
	}
	return ""
}
