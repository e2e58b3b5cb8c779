//go:build linux

package runs_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcsh-dev/mcsh/runs"
)

// TestFullDisk: on a disk that is full an output is not kept, the reason is, and what was kept before is whole. When
// there is room again, the store works.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("needs the right to mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s := runs.New(runs.Options{Dir: dir, Head: 1 << 10})
	defer s.Close()
	c := s.Of("me")
	before := data(1, 1<<20)
	first := keep(c, "1", before, 1<<20)
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	id, end := c.Begin()
	whole, endWhole := c.Create(id, "whole", false)
	partial, endPartial := c.Create(id, "partial", true)
	for i := range 30 {
		_, _ = whole.Write(data(2, 60<<10))
		_, _ = partial.Write(bytes.Repeat([]byte{byte(i)}, 100_000))
	}
	endWhole("")
	endPartial("")
	end()
	if got, why := read(t, c, id, "whole"); got != nil || why != "the disk for temporary files is full" {
		t.Errorf("got %d bytes, %q", len(got), why)
	}
	got, why := read(t, c, id, "partial")
	if len(got) == 0 || why != "the disk for temporary files is full" {
		t.Errorf("partial: got %d bytes, %q", len(got), why)
	}
	for at, b := range got {
		if int(b) != at/100_000 {
			t.Fatalf("partial: byte %d is %d", at, b)
		}
	}
	if got, _ := read(t, c, first, "1"); !bytes.Equal(got, before) {
		t.Errorf("what was kept before has changed: %d bytes", len(got))
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if got, why := read(t, c, keep(c, "1", before, 1<<20), "1"); !bytes.Equal(got, before) {
		t.Errorf("with room again: %d bytes, %q", len(got), why)
	}
}

// TestFilesGiveBack: a file goes when nothing of it is needed, and tells nothing of what was written.
func TestFilesGiveBack(t *testing.T) {
	s := runs.New(runs.Options{Dir: t.TempDir(), Head: 1 << 10, Total: 256 << 20})
	defer s.Close()
	c := s.Of("me")
	open := func() (files []string) {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			path := filepath.Join("/proc/self/fd", e.Name())
			if to, err := os.Readlink(path); err == nil && strings.Contains(to, "mcsh-runs-") {
				files = append(files, path)
			}
		}
		return files
	}
	secret := bytes.Repeat([]byte("a line that must not be found on a disk\n"), 10_000)
	id := keep(c, "1", secret, 1<<20)
	files := open()
	if len(files) != 1 {
		t.Fatalf("there are %d files, want one", len(files))
	}
	raw, err := os.ReadFile(files[0])
	if err != nil || len(raw) < len(secret)-1<<10 || bytes.Contains(raw, []byte("must not be found")) {
		t.Errorf("the file has %d bytes, %v; are they plain?", len(raw), err)
	}
	for range 5 { // 64 MiB and more make a second file
		keep(c, "1", make([]byte, 20<<20), 1<<20)
	}
	if n := len(open()); n != 2 {
		t.Errorf("there are %d files, want two", n)
	}
	if got, _ := read(t, c, id, "1"); !bytes.Equal(got, secret) {
		t.Errorf("got %d bytes", len(got))
	}
	s.Close()
	if n := len(open()); n != 0 {
		t.Errorf("%d files are left open", n)
	}
}
