package workspace_test

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/workspace"
)

// child names the change that this process makes for a test, "ROOT STEPS OPERATION": it kills itself before the step with
// that number.
const child = "MCSH_TEST_HISTORY"

func TestMain(m *testing.M) {
	if task := os.Getenv(child); task != "" {
		fields := strings.Fields(task)
		left, _ := strconv.Atoi(fields[1])
		workspace.SetStep(func(string) {
			if left--; left == 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		})
		d, err := workspace.Open(fields[0])
		if err == nil {
			err = changes[fields[2]](context.Background(), workspace.NewHistory(d, versions))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var versions = workspace.HistoryOptions{Versions: true}

// put writes text, as write_file does.
func put(ctx context.Context, h *workspace.History, name, text string) error {
	_, err := h.Change(ctx, name, 0, func([]byte, fs.FileInfo) ([]byte, error) { return []byte(text), nil })
	return err
}

// changes are made to a root of TestHistoryOfKilled.
var changes = map[string]func(context.Context, *workspace.History) error{
	"write":  func(ctx context.Context, h *workspace.History) error { return put(ctx, h, "dir/f", "three") },
	"create": func(ctx context.Context, h *workspace.History) error { return put(ctx, h, "new/g", "first") },
	"undo": func(ctx context.Context, h *workspace.History) error {
		_, _, err := h.Undo(ctx, "dir/f", 1)
		return err
	},
	"move": func(ctx context.Context, h *workspace.History) error {
		_, _, err := h.Move(ctx, "dir/f", "other/f")
		return err
	},
	"move-directory": func(ctx context.Context, h *workspace.History) error {
		_, _, err := h.Move(ctx, "dir", "other/deep")
		return err
	},
	"delete":           func(ctx context.Context, h *workspace.History) error { _, err := h.Delete(ctx, "dir/f"); return err },
	"delete-far":       func(ctx context.Context, h *workspace.History) error { _, err := h.Delete(ctx, "disk/dir"); return err },
	"delete-directory": func(ctx context.Context, h *workspace.History) error { _, err := h.Delete(ctx, "dir"); return err },
	"restore":          func(ctx context.Context, h *workspace.History) error { _, err := h.Restore(ctx, 1); return err },
}

// TestHistoryOfKilled kills a process before each step of each change. Then every file is as it was before the change or
// after it, the records agree with that, and every version is there.
func TestHistoryOfKilled(t *testing.T) {
	for name := range changes {
		if name == "delete-far" {
			continue // see TestHistoryOfKilledOnMounts
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				root := t.TempDir()
				h := workspace.NewHistory(open(t, root), versions)
				for _, text := range []string{"one", "two"} {
					if err := put(t.Context(), h, "dir/f", text); err != nil {
						t.Fatal(err)
					}
				}
				if name == "restore" {
					if _, err := h.Delete(t.Context(), "dir/f"); err != nil {
						t.Fatal(err)
					}
				}
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", child, root, n, name))
				out, err := cmd.CombinedOutput()
				if err == nil {
					if n < 3 {
						t.Errorf("the change has only %d steps", n-1)
					}
					return
				}
				if !cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
					t.Fatalf("step %d: %v: %s", n, err, out)
				}
				verify(t, root, fmt.Sprintf("killed before step %d", n))
			}
		})
	}
}

// verify checks that "one" and "two" can be reached wherever dir/f is, and that the records know where that is.
func verify(t *testing.T, root, when string) {
	t.Helper()
	h := workspace.NewHistory(open(t, root), versions)
	if _, _, err := h.MakeDir(t.Context(), "next"); err != nil { // completes the change
		t.Fatalf("%s: the next change: %v", when, err)
	}
	_, trail, err := h.Trace(t.Context(), "dir/f")
	if err != nil {
		t.Fatal(err)
	}
	at := "dir/f"
	if len(trail) > 0 {
		at = trail[len(trail)-1].Path
	}
	trash, err := h.Trash(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if (at == "") != (len(trash) == 1) {
		t.Fatalf("%s: the trail is %v, the trash %v", when, trail, trash)
	}
	if at == "" {
		if _, err := h.Restore(t.Context(), trash[0].ID); err != nil {
			t.Fatalf("%s: restoring: %v", when, err)
		}
		at = "dir/f"
	}
	var texts []string
	for {
		text, err := os.ReadFile(filepath.Join(root, at))
		if err != nil {
			t.Fatalf("%s: %v (the trail is %v)", when, err, trail)
		}
		texts = append(texts, string(text))
		if _, _, err := h.Undo(t.Context(), at, 1); err != nil {
			break
		}
	}
	for {
		if _, _, err := h.Redo(t.Context(), at, 1); err != nil {
			break
		}
		text, err := os.ReadFile(filepath.Join(root, at))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	for _, want := range []string{"one", "two"} {
		if !slices.Contains(texts, want) {
			t.Errorf("%s: version %q is lost: %q", when, want, texts)
		}
	}
}

func content(t *testing.T, root, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestVersions writes, undoes, redoes, and lets somebody else write in between.
func TestVersions(t *testing.T) {
	root := t.TempDir()
	h := workspace.NewHistory(open(t, root), versions)
	if err := os.WriteFile(filepath.Join(root, "f"), []byte("zero"), 0o640); err != nil {
		t.Fatal(err)
	}
	type shift = func(context.Context, string, int) (string, int, error)
	for i, s := range []struct {
		write  string // "!" first: by somebody else
		by     shift
		n      int
		want   string // of the file
		left   int
		failed string
	}{
		{write: "one", want: "one"},
		{write: "two", want: "two"},
		{by: h.Undo, n: 1, want: "one", left: 1},
		{by: h.Undo, n: 1, want: "zero", left: 0},
		{by: h.Undo, n: 1, want: "zero", failed: "can be undone no further"},
		{by: h.Redo, n: 3, want: "zero", failed: "can be redone only 2 times"},
		{by: h.Redo, n: math.MaxInt, want: "zero", failed: "can be redone only 2 times"},
		{by: h.Undo, n: math.MaxInt, want: "zero", failed: "can be undone no further"},
		{by: h.Redo, n: 2, want: "two", left: 0},
		{by: h.Undo, n: 2, want: "zero", left: 0},
		{by: h.Redo, n: 1, want: "one", left: 1},
		{write: "three", want: "three"},
		{by: h.Redo, n: 1, want: "three", failed: "can be redone no further"},
		{by: h.Undo, n: 1, want: "one", left: 1},
		{write: "!four", want: "!four"},
		{by: h.Undo, n: 1, want: "one", left: 1},
		{by: h.Redo, n: 1, want: "!four", left: 0},
		{write: "!five", want: "!five"},
		{write: "six", want: "six"},
		{by: h.Undo, n: 1, want: "!five", left: 3},
	} {
		var left int
		var err error
		switch {
		case s.by != nil:
			_, left, err = s.by(t.Context(), "f", s.n)
		case strings.HasPrefix(s.write, "!"):
			err = os.WriteFile(filepath.Join(root, "f"), []byte(s.write), 0o640)
		default:
			err = put(t.Context(), h, "f", s.write)
		}
		if (err != nil) != (s.failed != "") || err != nil && !strings.Contains(err.Error(), s.failed) {
			t.Fatalf("step %d: got error %v, want %q", i, err, s.failed)
		}
		if got := content(t, root, "f"); got != s.want || err == nil && left != s.left {
			t.Fatalf("step %d: the file holds %q with %d left, want %q with %d", i, got, left, s.want, s.left)
		}
	}
	if info, err := os.Stat(filepath.Join(root, "f")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v (%v), want it as it was", info.Mode(), err)
	}
}

// TestKeptVersions keeps only the newest ones, and never more bytes than allowed.
func TestKeptVersions(t *testing.T) {
	for _, o := range []workspace.HistoryOptions{
		{Versions: true, KeepVersions: 3},
		{Versions: true, KeepBytes: 30},
	} {
		root := t.TempDir()
		h := workspace.NewHistory(open(t, root), o)
		for i := range 8 {
			if err := put(t.Context(), h, "f", fmt.Sprintf("version %02d", i)); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := h.Undo(t.Context(), "f", 2); err != nil || content(t, root, "f") != "version 05" {
			t.Errorf("%+v: two versions back: %v, %q", o, err, content(t, root, "f"))
		}
		if _, _, err := h.Undo(t.Context(), "f", 1); err == nil {
			t.Errorf("%+v: a fourth version is kept", o)
		}
	}
}

// TestPlaces changes files through links, in missing directories and at places that are refused.
func TestPlaces(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	for _, dir := range []string{"real", ".git", "bare/objects", "bare/refs"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"link": "real/f", "dirlink": "real", "out": "../outside", "abs": "/etc", "loop": "loop", "up": "real/../real/f", "git": ".git", "hang": "none/f",
	} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := workspace.NewHistory(open(t, root), versions)
	for _, tt := range []struct{ name, rel, kind string }{
		{name: "link", rel: "real/f"},
		{name: "dirlink/x/y", rel: "real/x/y"},
		{name: "up", rel: "real/f"},
		{name: "hang", rel: "none/f"},
		{name: root + "/real/f", rel: "real/f"},
		{name: "a/../b", rel: "b"},
		{name: "out/f", kind: "PathEscape"},
		{name: "out", kind: "PathEscape"},
		{name: "abs/f", kind: "PathEscape"},
		{name: "../x", kind: "PathEscape"},
		{name: "loop", kind: "InvalidArgument"},
		{name: "pipe", kind: "InvalidArgument"},
		{name: "real", kind: "InvalidArgument"},
		{name: ".", kind: "InvalidArgument"},
		{name: ".git/config", kind: "InvalidArgument"},
		{name: "git/config", kind: "InvalidArgument"},
		{name: ".filesystem/x", kind: "InvalidArgument"},
		{name: ".mcsh/x", kind: "InvalidArgument"},
		{name: "bare/HEAD", kind: "InvalidArgument"},
		{name: "a\x00b", kind: "InvalidArgument"},
		{name: strings.Repeat("n", 300), kind: "InvalidArgument"},
		{name: "long/" + strings.Repeat("n", 256), kind: "InvalidArgument"},
		{name: strings.Repeat("é", 128) + "/x", kind: "InvalidArgument"},
		{name: strings.Repeat("n", 255), rel: strings.Repeat("n", 255)},
		{name: ".GIT/config", kind: "InvalidArgument"},
		{name: ".g\u200cit/config", kind: "InvalidArgument"},
		{name: "git~1/config", kind: "InvalidArgument"},
		{name: ".git. /config", kind: "InvalidArgument"},
		{name: ".Filesystem/x", kind: "InvalidArgument"},
		{name: ".mcsh::$INDEX_ALLOCATION/x", kind: "InvalidArgument"},
		{name: "caf\xe9", kind: "InvalidArgument"},
		{name: "cafe\u0301", rel: "cafe\u0301"},
		{name: "\u2024\u2024/x", rel: "\u2024\u2024/x"},
		{name: "real/f/x", kind: "NotFound"},
		{name: ".trash/x", rel: ".trash/x"},
		{name: ".gitignore", rel: ".gitignore"},
		{name: strings.Repeat("d/", 200) + "f", kind: "InvalidArgument"},
	} {
		rel, err := h.Change(t.Context(), tt.name, 0, func([]byte, fs.FileInfo) ([]byte, error) { return []byte("x"), nil })
		if kind := ""; err != nil {
			kind = string(workspace.KindOf(err))
			if kind != tt.kind {
				t.Errorf("%.40q: got %s: %v, want %q", tt.name, kind, err, tt.kind)
			}
		} else if rel != tt.rel || tt.kind != "" || content(t, root, rel) != "x" {
			t.Errorf("%.40q: changed %q, want %q or %s", tt.name, rel, tt.rel, tt.kind)
		}
	}
	if _, err := os.Lstat(filepath.Join(root, "long")); !os.IsNotExist(err) {
		t.Errorf("a name that is too long has made its directory: %v", err)
	}
	if info, err := os.Lstat(filepath.Join(root, "link")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
}

// TestTrail follows a file through moves, of its directory too, deletions and restores.
func TestTrail(t *testing.T) {
	root := t.TempDir()
	h := workspace.NewHistory(open(t, root), versions)
	for _, name := range []string{"a/f\twith tab", "a/g"} {
		if err := put(t.Context(), h, name, name); err != nil {
			t.Fatal(err)
		}
	}
	move := func(from, to string) {
		t.Helper()
		if _, _, err := h.Move(t.Context(), from, to); err != nil {
			t.Fatal(err)
		}
	}
	move("a/f\twith tab", "a/h")
	move("a", "b/c")
	gone, err := h.Delete(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	if err := put(t.Context(), h, "b", "in the way"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Restore(t.Context(), gone.ID); workspace.KindOf(err) != workspace.AlreadyExists {
		t.Errorf("restored over another file: %v", err)
	}
	move("b", "d")
	if _, err := h.Restore(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Restore(t.Context(), gone.ID); workspace.KindOf(err) != workspace.NotFound {
		t.Errorf("restored twice: %v", err)
	}
	for name, want := range map[string][]string{
		"a/f\twith tab": {"moved a/h", "moved b/c/h", "deleted ", "restored b/c/h"},
		"a/g":           {"moved b/c/g", "deleted ", "restored b/c/g"},
		"b":             {"moved d"},
		"d":             nil,
		"none":          nil,
	} {
		_, trail, err := h.Trace(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, hop := range trail {
			got = append(got, hop.What+" "+hop.Path)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", name, diff)
		}
	}
	if err := put(t.Context(), h, "b/c/h", "new"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Undo(t.Context(), "b/c/h", 1); err != nil || content(t, root, "b/c/h") != "a/f\twith tab" {
		t.Errorf("the versions did not move along: %v, %q", err, content(t, root, "b/c/h"))
	}
	move("b/c/g", "b/c/h2")
	if _, _, err := h.Move(t.Context(), "b/c/h2", "b/c/h"); workspace.KindOf(err) != workspace.AlreadyExists {
		t.Errorf("moved over another file: %v", err)
	}
	if _, _, err := h.Move(t.Context(), "b", "b/c/d"); workspace.KindOf(err) != workspace.InvalidArgument {
		t.Errorf("moved into itself: %v", err)
	}
}

// TestHistoryOfMany lets two processes' worth of writers change one file: the changes follow each other, and each of them
// is a version.
func TestHistoryOfMany(t *testing.T) {
	root := t.TempDir()
	var all sync.WaitGroup
	const each = 10
	for w := range 4 {
		h := workspace.NewHistory(open(t, root), versions) // with a lock of its own, as another process has
		all.Go(func() {
			for i := range each {
				_, err := h.Change(t.Context(), "f", 1<<20, func(old []byte, _ fs.FileInfo) ([]byte, error) {
					return fmt.Appendf(old, "%d.%d\n", w, i), nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := strings.Count(content(t, root, "f"), "\n"); n != 4*each {
		t.Errorf("%d changes are in the file, want %d", n, 4*each)
	}
	h := workspace.NewHistory(open(t, root), versions)
	if _, _, err := h.Undo(t.Context(), "f", 4*each-1); err != nil || strings.Count(content(t, root, "f"), "\n") != 1 {
		t.Errorf("the first version: %v, %q", err, content(t, root, "f"))
	}
}

// TestOddLogs reads logs that somebody else has written to: lines that are not of their form do not count.
func TestOddLogs(t *testing.T) {
	root := t.TempDir()
	h := workspace.NewHistory(open(t, root), versions)
	if err := put(t.Context(), h, "f", "x"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Move(t.Context(), "f", "g"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".moves", ".deletes"} {
		f, err := os.OpenFile(filepath.Join(root, ".filesystem", name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(f, "%s\n\n\x00\xff\t\t\n2026-01-01T00:00:00Z\tdelete\tx\tf\n2026-01-01T00:00:00Z\n9999-12-31T23:59:59Z\tg", strings.Repeat("x", 1<<20))
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Delete(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	list, err := h.Trash(t.Context())
	if err != nil || len(list) != 1 || list[0].Path != "g" {
		t.Errorf("the trash is %v, %v", list, err)
	}
	if _, trail, err := h.Trace(t.Context(), "f"); err != nil || len(trail) != 2 || trail[1].ID != list[0].ID {
		t.Errorf("the trail is %v, %v", trail, err)
	}
}

// TestNamesOfRecords moves and deletes files with the names of records.
func TestNamesOfRecords(t *testing.T) {
	root := t.TempDir()
	h := workspace.NewHistory(open(t, root), versions)
	if err := put(t.Context(), h, "f", "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Delete(t.Context(), "f"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".trash", ".moves", ".deletes", ".pending", ".gitignore", ".named"} {
		for _, text := range []string{"one", "two"} {
			if err := put(t.Context(), h, name+"/f", text); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := h.Move(t.Context(), name, "moved"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := h.Undo(t.Context(), "moved/f", 1); err != nil || content(t, root, "moved/f") != "one" {
			t.Errorf("%s: the versions did not move along: %v", name, err)
		}
		gone, err := h.Delete(t.Context(), "moved")
		if err != nil {
			t.Fatal(err)
		}
		if list, err := h.Trash(t.Context()); err != nil || list[0].ID != gone.ID || list[0].Path != "moved" || list[len(list)-1].Path != "f" {
			t.Errorf("%s: the trash is %v, %v", name, list, err)
		}
	}
}

// TestFormerFiles writes files in a directory where a file was that has versions: with the names of those, too.
func TestFormerFiles(t *testing.T) {
	root := t.TempDir()
	h := workspace.NewHistory(open(t, root), versions)
	write := func(name string) {
		t.Helper()
		for _, text := range []string{"one", "two"} {
			if err := put(t.Context(), h, name, text); err != nil {
				t.Fatal(err)
			}
		}
	}
	undo := func(name string) {
		t.Helper()
		if _, _, err := h.Undo(t.Context(), name, 1); err != nil || content(t, root, name) != "one" {
			t.Errorf("%s: %v, %q", name, err, content(t, root, name))
		}
	}
	write("f")
	if err := os.Remove(filepath.Join(root, "f")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"f/00001", "f/.head/x", "f/g"} {
		write(name)
		undo(name)
	}
	write("g")
	if _, _, err := h.Move(t.Context(), "g", "f/00002"); err != nil {
		t.Fatal(err)
	}
	undo("f/00002")
	if err := os.RemoveAll(filepath.Join(root, "f")); err != nil {
		t.Fatal(err)
	}
	write("f")
	undo("f")
}

// TestLongLog deletes a file when the log of deletions is too long to be read: only its end counts.
func TestLongLog(t *testing.T) {
	root := t.TempDir()
	h := workspace.NewHistory(open(t, root), versions)
	for _, name := range []string{"f", "g"} {
		if err := put(t.Context(), h, name, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Delete(t.Context(), "f"); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(root, ".filesystem/.deletes")
	f, err := os.OpenFile(log, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("\n2026-01-01T00:00:00Z\tdelete\t7\tx\n2026-01-01T00:00:01Z\trestore\t1\tf\n"), 1<<40); err != nil {
		t.Skipf("this file system has no such long file: %v", err)
	}
	gone, err := h.Delete(t.Context(), "g")
	if err != nil || gone.ID != 8 {
		t.Errorf("the entry is %d, %v, want 8", gone.ID, err)
	}
}

// TestOddPart finds a record of a copy that names other files: nothing is removed.
func TestOddPart(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"f", "dir/.mcsh-x", ".mcsh/lock"} {
		write(t, filepath.Join(root, name), "x")
	}
	if err := os.Symlink("dir", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	h := workspace.NewHistory(open(t, root), versions)
	for i, text := range []string{"f", "", ".", "../f", root + "/dir/.mcsh-x", "link/.mcsh-x", "dir/../dir/.mcsh-x", "dir", strings.Repeat("x", 5000)} {
		write(t, filepath.Join(root, ".mcsh/part"), text)
		if err := put(t.Context(), h, "g", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		if content(t, root, "f")+content(t, root, "dir/.mcsh-x") != "xx" {
			t.Errorf("%.40q: a file is gone", text)
		}
	}
	write(t, filepath.Join(root, ".mcsh/part"), "dir/.mcsh-x")
	if err := put(t.Context(), h, "g", "last"); err != nil {
		t.Fatal(err)
	}
	if got := files(t, root); got["dir/.mcsh-x"] != "" || got[".mcsh/part"] != "" || got["f"] != "x" {
		t.Errorf("the part of a copy is still there: %v", got)
	}
}

// TestLinkedRecords finds symbolic links in place of our own files and directories: nothing behind them changes.
func TestLinkedRecords(t *testing.T) {
	for _, link := range []string{".mcsh", ".mcsh/lock", ".mcsh/tmp", ".filesystem", ".filesystem/.trash", ".filesystem/.deletes", ".filesystem/f"} {
		root := t.TempDir()
		for _, dir := range []string{"data", filepath.Dir(link)} {
			if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(root, "data/00001")
		if err := os.WriteFile(file, []byte("data"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, time.Unix(0, 0), time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		to := "data"
		if strings.HasSuffix(link, "lock") || strings.HasSuffix(link, "deletes") {
			to = "data/00001"
		}
		if err := os.Symlink(filepath.Join(strings.Repeat("../", strings.Count(link, "/")), to), filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
		h := workspace.NewHistory(open(t, root), workspace.HistoryOptions{Versions: true, KeepVersions: 1})
		if err := put(t.Context(), h, "f", "x"); err == nil || !strings.Contains(err.Error(), "is behind a symbolic link") {
			t.Errorf("%s: %v", link, err)
		}
		if list, err := os.ReadDir(filepath.Join(root, "data")); err != nil || len(list) != 1 || content(t, root, "data/00001") != "data" {
			t.Errorf("%s: the data is now %v, %v", link, list, err)
		}
	}
}

// TestOddPending finds records of a change that no caller could have made, and makes none of its renames.
func TestOddPending(t *testing.T) {
	line := func(fields ...string) string { return "2026-01-01T00:00:00Z\t" + strings.Join(fields, "\t") + "\n" }
	for _, text := range []string{
		line(".git/config", "x"), line("f", ".git/hooks/post-checkout"), line("f", "../x"), line("f", ".filesystem/x"), line(".mcsh", "x"),
		line("link/config", "x"), line("delete", "1", ".git"), line("restore", "1", ".git/x"), line("delete", "0", "f"), line("versions", "1", "f"), line("", ""), "",
	} {
		root := t.TempDir()
		for _, dir := range []string{".git", ".filesystem/.trash/1"} {
			if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"f", ".git/config"} {
			if err := os.WriteFile(filepath.Join(root, name), []byte("x"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(".git", filepath.Join(root, "link")); err != nil {
			t.Fatal(err)
		}
		var inodes [2]uint64
		for i, name := range []string{".git/config", "f"} {
			info, err := os.Stat(filepath.Join(root, name))
			if err != nil {
				t.Fatal(err)
			}
			inodes[i] = info.Sys().(*syscall.Stat_t).Ino
		}
		for _, inodes := range [][2]uint64{inodes, {inodes[1], inodes[0]}} {
			data := fmt.Sprintf(`{"line":%q,"inodes":[%d,%d]}`, text, inodes[0], inodes[1])
			if err := os.WriteFile(filepath.Join(root, ".filesystem/.pending"), []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
			h := workspace.NewHistory(open(t, root), versions)
			if err := put(t.Context(), h, "g", "x"); err == nil || !strings.Contains(err.Error(), ".pending cannot be read") {
				t.Errorf("%q: %v", text, err)
			}
			if content(t, root, "f")+content(t, root, ".git/config") != "xx" {
				t.Errorf("%q: a file has changed", text)
			}
		}
	}
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, ".filesystem"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, ".filesystem/.pending"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := put(t.Context(), workspace.NewHistory(open(t, root), versions), "g", "x"); workspace.KindOf(err) != workspace.IoError {
		t.Errorf("a named pipe: %v", err)
	}
}
