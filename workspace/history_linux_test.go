package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/costtest"
	"github.com/mcsh-dev/mcsh/internal/flock"
	"github.com/mcsh-dev/mcsh/workspace"
)

// mount mounts a small disk, or skips the test.
func mount(t *testing.T, dir, options string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// TestHistoryOfMounts writes, deletes and restores where another file system is mounted in the root.
func TestHistoryOfMounts(t *testing.T) {
	root := t.TempDir()
	disk := filepath.Join(root, "disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	mount(t, disk, "size=8m")
	h := workspace.NewHistory(open(t, root), versions)
	for _, text := range []string{"one", "two"} {
		if err := put(t.Context(), h, "disk/dir/f", text); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("f", disk+"/dir/link"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(disk+"/dir", 0o711); err != nil {
		t.Fatal(err)
	}
	gone, err := h.Delete(t.Context(), "disk/dir")
	if err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(disk); len(entries) != 0 {
		t.Errorf("after the deletion there are %v", entries)
	}
	if _, err := h.Restore(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Undo(t.Context(), "disk/dir/link", 1); err != nil || content(t, root, "disk/dir/f") != "one" {
		t.Errorf("undone: %v, %q", err, content(t, root, "disk/dir/f"))
	}
	if info, err := os.Stat(disk + "/dir"); err != nil || info.Mode().Perm() != 0o711 {
		t.Errorf("the mode of the directory: %v, %v", info.Mode(), err)
	}
}

// TestDraftsOnMount makes every change where the drafts are on another file system, so that each is copied to its place.
func TestDraftsOnMount(t *testing.T) {
	root := t.TempDir()
	drafts, disk := filepath.Join(root, ".mcsh/tmp"), filepath.Join(root, "disk")
	for _, dir := range []string{drafts, disk} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		mount(t, dir, "size=8m")
	}
	h := workspace.NewHistory(open(t, root), versions)
	for _, text := range []string{"one", "two"} {
		if err := put(t.Context(), h, "dir/f", text); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := h.Move(t.Context(), "dir", "disk/dir"); err != nil {
		t.Fatal(err)
	}
	gone, err := h.Delete(t.Context(), "disk/dir")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Restore(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Undo(t.Context(), "disk/dir/f", 1); err != nil || content(t, root, "disk/dir/f") != "one" {
		t.Errorf("undone: %v, %q", err, content(t, root, "disk/dir/f"))
	}
	if _, _, err := h.Move(t.Context(), "disk/dir", "taken"); err != nil {
		t.Fatal(err)
	}
	defer workspace.SetStep(func(name string) {
		if part, _ := filepath.Glob(disk + "/.mcsh-*"); name == "copied" && len(part) > 0 {
			write(t, disk+"/taken", "x") // the copy of a directory cannot replace a file
		}
	})()
	if _, _, err := h.Move(t.Context(), "taken", "disk/taken"); err == nil {
		t.Error("a move replaced a file that somebody made meanwhile")
	}
	for name := range files(t, root) {
		if strings.Contains(name, ".mcsh-") || name == ".mcsh/part" {
			t.Errorf("%s is left", name)
		}
	}
	if content(t, root, "taken/f") != "one" {
		t.Error("the file is lost")
	}
}

// TestLockRemoved removes the lock's file while a change waits for it, and locks the next one: the change waits for that.
func TestLockRemoved(t *testing.T) {
	root := t.TempDir()
	h := workspace.NewHistory(open(t, root), versions)
	if err := put(t.Context(), h, "f", "one"); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(root, ".mcsh/lock")
	lock := func() *os.File {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := flock.Wait(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		return f
	}
	first := lock()
	done := make(chan error, 1)
	go func() { done <- put(t.Context(), h, "f", "two") }()
	for opened := 0; opened < 2; { // by this test and by the change
		select {
		case err := <-done:
			t.Fatalf("the change did not wait: %v", err)
		default:
		}
		opened = 0
		fds, _ := filepath.Glob("/proc/self/fd/*")
		for _, fd := range fds {
			if to, err := os.Readlink(fd); err == nil && to == name {
				opened++
			}
		}
	}
	if err := os.RemoveAll(filepath.Dir(name)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	second := lock()
	first.Close()
	select {
	case err := <-done:
		t.Errorf("the change did not wait: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	second.Close()
	if err := <-done; err != nil || content(t, root, "f") != "two" {
		t.Errorf("after all: %v, %q", err, content(t, root, "f"))
	}
}

// TestHistoryOnFullDisk changes nothing when the disk is full, and the next change works.
func TestHistoryOnFullDisk(t *testing.T) {
	root := t.TempDir()
	mount(t, root, "size=1m")
	h := workspace.NewHistory(open(t, root), versions)
	for _, text := range []string{"before", "as it was"} {
		if err := put(t.Context(), h, "f", text); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []int{2 << 20, 600 << 10} { // too large itself, and together with its version
		err := put(t.Context(), h, "f", strings.Repeat("x", size))
		if err == nil || !strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("%d bytes: %v", size, err)
		}
		if got := content(t, root, "f"); got != "as it was" {
			t.Errorf("%d bytes: the file holds %.20q", size, got)
		}
		if err := put(t.Context(), h, "f", "as it was"); err != nil {
			t.Errorf("after %d bytes: %v", size, err)
		}
	}
	fill := filepath.Join(root, "fill")
	if err := os.WriteFile(fill, make([]byte, 2<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	for name, change := range map[string]func() error{
		"undo":   func() error { _, _, err := h.Undo(t.Context(), "f", 1); return err },
		"move":   func() error { _, _, err := h.Move(t.Context(), "f", "g"); return err },
		"delete": func() error { _, err := h.Delete(t.Context(), "f"); return err },
	} {
		if err := change(); err == nil || !strings.Contains(err.Error(), "the disk is full") || content(t, root, "f") != "as it was" {
			t.Errorf("%s: %v, the file holds %q", name, err, content(t, root, "f"))
		}
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Undo(t.Context(), "f", 1); err != nil {
		t.Errorf("undone at last: %v", err)
	}
}

// TestHistoryOnReadOnlyDisk reads without writing, and says that nothing can be changed.
func TestHistoryOnReadOnlyDisk(t *testing.T) {
	root := t.TempDir()
	mount(t, root, "size=1m")
	if err := os.WriteFile(root+"/f", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", root, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=1m"); err != nil {
		t.Fatal(err)
	}
	d := open(t, root)
	h := workspace.NewHistory(d, versions)
	if list, _, err := d.ReadDir(t.Context(), ".", workspace.ListOptions{}); err != nil || len(list) != 1 {
		t.Errorf("the list is %v, %v", list, err)
	}
	if list, err := h.Trash(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("the trash is %v, %v", list, err)
	}
	if err := put(t.Context(), h, "f", "y"); err == nil || !strings.Contains(err.Error(), "read-only file system") {
		t.Errorf("a change: %v", err)
	}
}

// TestHistoryOfKilledOnMounts kills a process before each step of a deletion that copies. Then the directory is complete,
// there or in the trash.
func TestHistoryOfKilledOnMounts(t *testing.T) {
	for _, mounts := range [][]string{{"disk"}, {"disk", ".mcsh/tmp"}} {
		t.Run(strings.Join(mounts, " "), func(t *testing.T) { killOnMounts(t, mounts) })
	}
}

func killOnMounts(t *testing.T, mounts []string) {
	t.Helper()
	for n := 1; ; n++ {
		root := t.TempDir()
		disk := filepath.Join(root, "disk")
		for _, dir := range mounts {
			if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
				t.Fatal(err)
			}
			mount(t, filepath.Join(root, dir), "size=1m")
		}
		h := workspace.NewHistory(open(t, root), versions)
		for _, name := range []string{"disk/dir/f", "disk/dir/g"} {
			if err := put(t.Context(), h, name, name); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d delete-far", child, root, n))
		err := cmd.Run()
		if _, _, err := h.MakeDir(t.Context(), "next"); err != nil {
			t.Fatalf("step %d: the next change: %v", n, err)
		}
		if left := files(t, root); slices.ContainsFunc(slices.Collect(maps.Keys(left)), func(name string) bool { return strings.Contains(name, ".mcsh-") }) {
			t.Errorf("step %d: a part of a copy is left: %v", n, left)
		}
		list, err2 := h.Trash(t.Context())
		if err2 != nil {
			t.Fatal(err2)
		}
		if len(list) > 0 {
			if entries, _ := os.ReadDir(disk); len(entries) > 0 {
				t.Errorf("step %d: after the deletion there are %v", n, entries)
			}
			if _, err := h.Restore(t.Context(), list[0].ID); err != nil {
				t.Fatalf("step %d: %v", n, err)
			}
		}
		for _, name := range []string{"disk/dir/f", "disk/dir/g"} {
			if content(t, root, name) != name {
				t.Errorf("step %d: %s holds %q", n, name, content(t, root, name))
			}
		}
		if err == nil {
			if n < 5 {
				t.Errorf("the deletion has only %d steps", n-1)
			}
			return
		}
	}
}

// TestCopyEnds moves to another file system what is too deep to be copied, or when nobody waits any more: all stays as it was.
func TestCopyEnds(t *testing.T) {
	root := t.TempDir()
	disk := filepath.Join(root, "disk")
	for _, dir := range []string{disk, filepath.Join(root, "tree"), filepath.Join(root, "pair")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mount(t, disk, "size=8m")
	costtest.Nested(t, filepath.Join(root, "tree"), 1100)
	h := workspace.NewHistory(open(t, root), versions)
	for _, name := range []string{"pair/a", "pair/b"} {
		if err := put(t.Context(), h, name, name); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := h.Move(t.Context(), "tree", "disk/tree"); err == nil || !strings.Contains(err.Error(), "levels deep") {
		t.Errorf("a deep tree: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer workspace.SetStep(func(name string) {
		if name == "rename" {
			cancel()
		}
	})()
	if _, _, err := h.Move(ctx, "pair", "disk/pair"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled move: %v", err)
	}
	if list, err := os.ReadDir(disk); err != nil || len(list) != 0 || content(t, root, "pair/a")+content(t, root, "pair/b") != "pair/apair/b" {
		t.Errorf("on the other file system there are %v, %v", list, err)
	}
	if _, _, err := h.Move(t.Context(), "pair", "disk/pair"); err != nil {
		t.Errorf("the next move: %v", err)
	}
}

// TestSaveKeepsOwner: a file keeps its owner when a save replaces it or joins data to it.
func TestSaveKeepsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to others")
	}
	d, root := openRoot(t)
	file := filepath.Join(root, "f")
	if err := os.WriteFile(file, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(file, file+"2"); err != nil { // so that an append replaces it
		t.Fatal(err)
	}
	if err := os.Chown(file, 1234, 2345); err != nil {
		t.Fatal(err)
	}
	for _, how := range []workspace.SaveOptions{joins, replaces} {
		if _, err := save(t, d, "f", "new", how); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if s := info.Sys().(*syscall.Stat_t); s.Uid != 1234 || s.Gid != 2345 || info.Mode() != 0o640 {
			t.Errorf("after %+v the file belongs to %d:%d with %v, want 1234:2345 with 0640", how, s.Uid, s.Gid, info.Mode())
		}
	}
}
