package workspace_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/workspace"
)

// save saves text and returns what is passed on.
func save(t *testing.T, d *workspace.Dir, path, text string, o workspace.SaveOptions) (string, error) {
	t.Helper()
	r, err := d.Save(t.Context(), path, strings.NewReader(text), o)
	if err != nil {
		return "", err
	}
	defer r.Close()
	passed, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(passed), nil
}

// files returns the regular files of a root with their contents, drafts among them, but not the lock and the count.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		if rel != ".mcsh/lock" && rel != ".mcsh/written" {
			found[rel] = string(data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// openRoot opens a new directory.
func openRoot(t *testing.T) (*workspace.Dir, string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return open(t, root), root
}

var overwritten = regexp.MustCompile(`--- mcsh:overwrite ts=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ record_id=\d{19} ---`)

// How data is saved.
var replaces, appends, joins = workspace.SaveOptions{}, workspace.SaveOptions{Append: true}, workspace.SaveOptions{Append: true, Joined: true}

func TestSave(t *testing.T) {
	d, root := openRoot(t)
	for _, s := range []struct {
		path, text string
		how        workspace.SaveOptions
	}{
		{"a.txt", "one\n", replaces},
		{"a.txt", "two", replaces},
		{root + "/a.txt", "three\n", replaces},
		{"sub/dir/b.log", "x\n", appends},
		{"./sub/dir/../dir/b.log", "y\n", appends},
		{"empty", "", replaces},
		{"lines", "hello", appends},
		{"lines", "hello", appends},
		{"lines", "", appends},
		{"lines", "hello\r\n", appends},
		{"lines", "\n", appends},
		{"lines", "hello", appends},
		{"empty later", "", appends},
		{"empty later", "hello", appends},
		{"mixed", "one", replaces},
		{"mixed", "two", appends},
		{"mixed", "three", replaces},
		{"joined", "one", joins},
		{"joined", "two\n", joins},
		{"joined", "three", joins},
	} {
		passed, err := save(t, d, s.path, s.text, s.how)
		if err != nil || passed != s.text {
			t.Errorf("saving %q: passed on %q, %v", s.path, passed, err)
		}
	}
	got := files(t, root)
	for name := range got {
		got[name] = overwritten.ReplaceAllString(got[name], "--- OVERWRITE ---")
	}
	want := map[string]string{
		"a.txt": "three\n", "sub/dir/b.log": "x\ny\n", "empty": "",
		".mcsh/audit/a.txt":         "--- OVERWRITE ---\none\n--- OVERWRITE ---\ntwo\n--- OVERWRITE ---\nthree\n",
		".mcsh/audit/sub/dir/b.log": "x\ny\n", ".mcsh/audit/empty": "--- OVERWRITE ---\n",
		"lines": "hello\nhello\nhello\r\n\nhello", ".mcsh/audit/lines": "hello\nhello\nhello\r\n\nhello",
		"empty later": "hello", ".mcsh/audit/empty later": "hello",
		"mixed": "three", ".mcsh/audit/mixed": "--- OVERWRITE ---\none\ntwo\n--- OVERWRITE ---\nthree",
		"joined": "onetwo\nthree", ".mcsh/audit/joined": "onetwo\nthree",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got)\n%s", diff)
	}
}

func TestSaveKeepsMode(t *testing.T) {
	d, root := openRoot(t)
	path := filepath.Join(root, "script.sh")
	if err := os.WriteFile(path, []byte("old"), 0o750); err != nil {
		t.Fatal(err)
	}
	for _, behind := range []bool{false, true} {
		if _, err := save(t, d, "script.sh", "new", workspace.SaveOptions{Append: behind}); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o750 {
			t.Errorf("the mode is %v, %v; want it as it was", info.Mode(), err)
		}
	}
}

// TestSaveRefuses tries what must change nothing, neither a file nor the mirror.
func TestSaveRefuses(t *testing.T) {
	d, root := openRoot(t)
	outside := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(root, "dir"), 0o755),
		os.WriteFile(filepath.Join(root, "file"), []byte("as it was"), 0o644),
		os.Symlink("file", filepath.Join(root, "link")),
		os.Symlink(outside, filepath.Join(root, "out")),
		os.Symlink(".mcsh", filepath.Join(root, "hidden")),
		os.Symlink("nowhere", filepath.Join(root, "dangling")),
		syscall.Mkfifo(filepath.Join(root, "pipe"), 0o644),
		os.MkdirAll(filepath.Join(root, ".mcsh/audit"), 0o755),
		syscall.Mkfifo(filepath.Join(root, ".mcsh/audit/taken"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before := files(t, root)
	five := func() io.Reader { return strings.NewReader("12345") }
	broken := func() io.Reader {
		return io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errors.New("the pipe broke")))
	}
	cut := func() io.Reader { // an error that is no end of the data, though it wraps one
		return io.MultiReader(strings.NewReader("half"), iotest.ErrReader(fmt.Errorf("the server left: %w", io.EOF)))
	}
	tests := []struct {
		path string
		in   func() io.Reader
		max  int64
		want string
	}{
		{"../x", five, 0, "leads out of the root"},
		{"/etc/passwd", five, 0, "outside of the root"},
		{"dir", five, 0, "is a directory"},
		{"new/", five, 0, "is a directory"},
		{" ", five, 0, "a name of blanks"},
		{"a/\t/b", five, 0, "a name of blanks"},
		{".", five, 0, "is a directory"},
		{"file/x", five, 0, "is not a directory"},
		{"link", five, 0, "symbolic link"},
		{"dangling", five, 0, "symbolic link"},
		{"out/x", five, 0, "symbolic link"},
		{"hidden/audit/file", five, 0, "symbolic link"},
		{".mcsh/audit/file", five, 0, "not for callers"},
		{"a/.MCSH/x", five, 0, "not for callers"},
		{".filesystem/x", five, 0, "not for callers"},
		{".git/config", five, 0, "git's own"},
		{"a/.GIT", five, 0, "git's own"},
		{"pipe", five, 0, "named pipe"},
		{"a\x00b", five, 0, "NUL"},
		{"taken", five, 0, "its mirror"},
		{"file", five, 4, "longer than allowed"},
		{"file", broken, 0, "the pipe broke"},
		{"file", cut, 0, "the server left: EOF"},
	}
	for _, test := range tests {
		for _, behind := range []bool{false, true} {
			_, err := d.Save(t.Context(), test.path, test.in(), workspace.SaveOptions{Append: behind, Max: test.max})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("saving %q: %v, want %q", test.path, err, test.want)
			}
		}
	}
	if diff := cmp.Diff(before, files(t, root)); diff != "" {
		t.Errorf("files (-before +after)\n%s", diff)
	}
}

// TestSaveMirrorTaken saves files where directories were and directories where files were, again and again: each file has
// a mirror of its own.
func TestSaveMirrorTaken(t *testing.T) {
	d, root := openRoot(t)
	for range 2 {
		for _, path := range []string{"a", "a/b/c", "a/b", "a/b/c/d"} {
			if err := os.RemoveAll(filepath.Join(root, "a")); err != nil {
				t.Fatal(err)
			}
			if _, err := save(t, d, path, path+"\n", workspace.SaveOptions{Append: true}); err != nil {
				t.Errorf("saving %q: %v", path, err)
			}
		}
	}
	want := map[string]string{
		"a/b/c/d":                               "a/b/c/d\n",
		".mcsh/audit/a":                         "a\na\n",
		".mcsh/audit/.mcsh/a/b/c":               "a/b/c\na/b/c\n",
		".mcsh/audit/.mcsh/.mcsh/a/b":           "a/b\na/b\n",
		".mcsh/audit/.mcsh/.mcsh/.mcsh/a/b/c/d": "a/b/c/d\na/b/c/d\n",
	}
	if diff := cmp.Diff(want, files(t, root)); diff != "" {
		t.Errorf("files (-want +got)\n%s", diff)
	}
}

// TestSaveWaits: while another process writes, a save waits as long as its caller does.
func TestSaveWaits(t *testing.T) {
	d, root := openRoot(t)
	if _, err := save(t, d, "a", "as it was\n", workspace.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(filepath.Join(root, ".mcsh/lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	before := files(t, root)
	up := errors.New("the time is up")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var wg sync.WaitGroup
	for range 3 { // one waits for the other process, the others for it
		wg.Go(func() {
			_, err := d.Save(ctx, "a", iotest.DataErrReader(strings.NewReader("new\n")), workspace.SaveOptions{})
			if !errors.Is(err, up) || !strings.Contains(err.Error(), `"a" was not saved: others`) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		complete := 0
		for name, text := range files(t, root) {
			if strings.HasPrefix(name, ".mcsh/tmp/") && text == "new\n" {
				complete++
			}
		}
		if complete == 3 { // all that is left is the wait
			break
		}
	}
	cancel(up)
	wg.Wait()
	if diff := cmp.Diff(before, files(t, root)); diff != "" {
		t.Errorf("files (-before +after)\n%s", diff)
	}
	lock.Close()
	if _, err := save(t, d, "a", "new\n", workspace.SaveOptions{}); err != nil {
		t.Errorf("when the other has ended: %v", err)
	}
}

// TestSaveTogether saves from many sides at once: no line is lost or torn, and what is replaced is always whole.
func TestSaveTogether(t *testing.T) {
	d, root := openRoot(t)
	other, err := workspace.Open(root) // as another process has it
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var wg sync.WaitGroup
	for i := range 20 {
		dir := []*workspace.Dir{d, other}[i%2]
		wg.Go(func() {
			text := strings.Repeat(fmt.Sprintf("%02d", i), 50_000) + "\n"
			for path, behind := range map[string]bool{"log": true, "whole": false} {
				r, err := dir.Save(t.Context(), path, iotest.OneByteReader(bytes.NewReader(nil)), workspace.SaveOptions{Append: behind})
				if err == nil {
					r.Close()
					r, err = dir.Save(t.Context(), path, strings.NewReader(text), workspace.SaveOptions{Append: behind})
				}
				if err != nil {
					t.Error(err)
					return
				}
				r.Close()
			}
		})
	}
	wg.Wait()
	got := files(t, root)
	lines := strings.Split(strings.TrimSuffix(got["log"], "\n"), "\n")
	seen := map[string]bool{}
	for _, l := range lines {
		seen[l[:2]] = true
		if l != strings.Repeat(l[:2], 50_000) {
			t.Fatalf("a line of %d characters is torn", len(l))
		}
	}
	if len(lines) != 20 || len(seen) != 20 {
		t.Errorf("%d lines of %d writers, want 20", len(lines), len(seen))
	}
	if w := got["whole"]; w != "" && w != strings.Repeat(w[:2], 50_000)+"\n" {
		t.Errorf("the replaced file has %d characters of several writers", len(w))
	}
	for name := range got {
		if strings.HasPrefix(name, ".mcsh/tmp/") {
			t.Errorf("%s is left", name)
		}
	}
}
