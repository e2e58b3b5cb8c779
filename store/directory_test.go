package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/store"
)

func openDirectory(t testing.TB, dir string) *store.Directory {
	t.Helper()
	d, err := store.OpenDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T) store.Store { return openDirectory(t, t.TempDir()+"/new/store") })
}

// TestDirectoryOfOthers has entries that no store makes: it neither follows them, nor waits for them, nor lists them.
func TestDirectoryOfOthers(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	write(t, outside, "secret")
	dir := t.TempDir()
	s := openDirectory(t, dir)
	mustPut(t, s, "a/real", "x")
	for name, make := range map[string]func(string) error{
		"link":    func(p string) error { return os.Symlink(outside, p) },
		"inside":  func(p string) error { return os.Symlink("real", p) },
		"nowhere": func(p string) error { return os.Symlink("nothing", p) },
		"pipe":    func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"socket": func(p string) error {
			fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			return errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: p}), syscall.Close(fd))
		},
		"folder": func(p string) error { return os.MkdirAll(p+"/more", 0o700) },
	} {
		object := "a/" + name
		if err := make(filepath.Join(dir, object)); err != nil {
			t.Fatal(err)
		}
		if got, err := get(t.Context(), s, object); err == nil {
			t.Errorf("%s: read %q", name, got)
		}
		if err := put(t.Context(), s, object, "x"); err == nil || errors.Is(err, store.ErrExists) {
			t.Errorf("%s: put %v", name, err)
		}
		if got := names(t, s, object+"/"); len(got) > 0 {
			t.Errorf("%s: below it are %q", name, got)
		}
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	if err := put(t.Context(), s, "out/new", "x"); err == nil {
		t.Error("an object has left the directory")
	}
	if got, err := get(t.Context(), s, "out/secret"); err == nil {
		t.Errorf("what is outside is read: %q", got)
	}
	write(t, filepath.Join(dir, "a", "a strange name~"), "x")
	large := filepath.Join(dir, "large")
	write(t, large, "x")
	if err := os.Truncate(large, 1<<40); err != nil {
		t.Fatal(err)
	}
	if got, err := get(t.Context(), s, "large"); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("of a file of 1 TiB %d bytes are read, %v", len(got), err)
	}
	if err := s.Delete(t.Context(), "large"); err != nil {
		t.Error(err)
	}
	if got := names(t, s, ""); len(got) != 1 || got[0] != "a/real 1" {
		t.Errorf("the list has %q", got)
	}
	for _, name := range []string{"link", "inside", "pipe", "socket", "folder"} {
		if err := s.Delete(t.Context(), "a/"+name); err != nil {
			t.Error(err)
		}
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "secret" {
		t.Errorf("what a link names is now %q, %v", data, err)
	}
}

func write(t *testing.T, path, data string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDrafts: what a writer has left that died in the middle is no object, and is removed after an hour.
func TestDrafts(t *testing.T) {
	dir := t.TempDir()
	s := openDirectory(t, dir)
	drafts := filepath.Join(dir, "~drafts")
	for name, age := range map[string]time.Duration{"old": 61 * time.Minute, "young": 59 * time.Minute} {
		write(t, filepath.Join(drafts, name), "half")
		then := time.Now().Add(-age)
		if err := os.Chtimes(filepath.Join(drafts, name), then, then); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(t, s, ""); len(got) > 0 {
		t.Errorf("there are %q", got)
	}
	d := openDirectory(t, dir) // another gateway begins
	mustPut(t, d, "a/b", "x")
	entries, err := os.ReadDir(drafts)
	if err != nil || len(entries) != 1 || entries[0].Name() != "young" {
		t.Errorf("there are the drafts %v, %v", entries, err)
	}
	if err := put(t.Context(), d, "a/b/c", "x"); err == nil {
		t.Error("an object is a folder, too")
	}
	if entries, err = os.ReadDir(drafts); err != nil || len(entries) != 1 {
		t.Errorf("a failed put leaves %v, %v", entries, err)
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if mode := info.Mode().Perm(); path != dir && mode&0o077 != 0 {
			t.Errorf("others can use %s: %v", path, mode)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRepeatedLink has what a network file system leaves that repeats the request whose answer was lost.
func TestRepeatedLink(t *testing.T) {
	dir := t.TempDir()
	d := openDirectory(t, dir)
	mustPut(t, d, "a/object", "x")
	write(t, filepath.Join(dir, "another draft"), "x")
	if err := os.Link(filepath.Join(dir, "a/object"), filepath.Join(dir, "draft")); err != nil {
		t.Fatal(err)
	}
	if err := store.Taken(d, "draft", "a/object"); err != nil {
		t.Errorf("an object is in its own way: %v", err)
	}
	if err := store.Taken(d, "another draft", "a/object"); !errors.Is(err, store.ErrExists) {
		t.Errorf("an object of another one: %v", err)
	}
}

func TestOpenDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "x")
	if _, err := store.OpenDirectory(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file: %v", err)
	}
	if os.Getuid() == 0 {
		return // who may write everywhere
	}
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := store.OpenDirectory(closed); err == nil || !strings.Contains(err.Error(), closed) {
		t.Errorf("a directory that cannot be written: %v", err)
	}
}

// TestReplacedDirectory: a store whose directory others no longer find takes and gives nothing.
func TestReplacedDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	d, err := store.OpenDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Put(t.Context(), "runs/1", []byte("x")); err != nil {
		t.Fatal(err)
	}
	fails := func(when string) {
		t.Helper()
		_, read := d.Get(t.Context(), "runs/1")
		var listed error
		for _, err := range d.List(t.Context(), "runs/") {
			listed = err
		}
		for what, err := range map[string]error{
			"put": d.Put(t.Context(), "runs/2", nil), "get": read, "list": listed, "delete": d.Delete(t.Context(), "runs/1"),
		} {
			if err == nil || errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), "removed or replaced") {
				t.Errorf("%s when it is %s: %v", what, when, err)
			}
		}
	}
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	fails("removed")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	fails("replaced")
}
