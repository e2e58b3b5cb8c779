package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/workspace"
)

// layout makes a directory "root" with files inside, and secrets beside it, and returns its parent.
func layout(t *testing.T) string {
	t.Helper()
	top := t.TempDir()
	top, err := filepath.EvalSymlinks(top)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"secret.txt":             "secret",
		"rooted/secret.txt":      "secret", // a name that begins like the root's
		"outside/secret.txt":     "secret",
		"root/a.txt":             "a",
		"root/dir/b.txt":         "b",
		"root/dir/deep/c.txt":    "c",
		"root/..dots/d.txt":      "d",
		"root/node_modules/x.js": "x",
	} {
		write(t, filepath.Join(top, name), text)
	}
	for link, target := range map[string]string{
		"root/in":             "dir/b.txt",
		"root/indir":          "dir",
		"root/dir/up":         "../a.txt",
		"root/out":            "../secret.txt",
		"root/outdir":         "../outside",
		"root/abs":            filepath.Join(top, "secret.txt"),
		"root/absin":          filepath.Join(top, "root/a.txt"),
		"root/dir/deep/chain": "../../outdir",
		"root/loop":           "loop",
		"root/broken":         "nowhere",
		"root/rootlink":       "..",
		"link":                "root",
	} {
		if err := os.Symlink(target, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(top, "root/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	return top
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, root string) *workspace.Dir {
	t.Helper()
	d, err := workspace.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestPrivate: nobody reads or lists the private directories, by any name, nor through a link.
func TestPrivate(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{".mcsh/audit/a", ".filesystem/a", "sub/.mcsh/a", "mcsh/a"} {
		write(t, filepath.Join(root, name), "x")
	}
	for link, target := range map[string]string{"link": ".mcsh", "sub/deep": "../.mcsh/audit", "file": ".mcsh/audit/a"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	d := open(t, root)
	for _, path := range []string{
		".mcsh/audit/a", "./.mcsh/audit/../audit/a", ".MCSH/audit/a", root + "/.mcsh/audit/a", ".filesystem/a", "sub/.mcsh/a",
		"link/audit/a", "sub/deep/a", "file", ".mcsh/no",
	} {
		if _, err := d.Open(path); workspace.KindOf(err) != workspace.InvalidArgument || !strings.Contains(err.Error(), "not for callers") {
			t.Errorf("%s: got %v", path, err)
		}
	}
	for _, path := range []string{".mcsh", ".mcsh/audit", "link", "link/audit", "sub/deep"} {
		_, _, listed := d.ReadDir(t.Context(), path, workspace.ListOptions{})
		walked := d.Walk(t.Context(), path, workspace.WalkOptions{}, workspace.Visitor{
			Enter: func(workspace.Entry) error { return nil }, Leave: func(workspace.Entry, string) {},
		})
		for _, err := range []error{listed, walked} {
			if err == nil || !strings.Contains(err.Error(), "not for callers") {
				t.Errorf("%s: got %v", path, err)
			}
		}
	}
	if got := read(d, "mcsh/a"); got != "x" {
		t.Errorf("another directory: got %q", got)
	}
}

// read returns what is in the file at path, or the kind of the error.
func read(d *workspace.Dir, path string) string {
	f, err := d.Open(path)
	if err != nil {
		return string(workspace.KindOf(err))
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func TestOpenIsConfined(t *testing.T) {
	top := layout(t)
	d := open(t, filepath.Join(top, "link"))
	if got, want := d.Root(), filepath.Join(top, "root"); got != want {
		t.Errorf("Root() = %q, want %q", got, want)
	}
	for _, tt := range []struct{ path, want string }{
		{"a.txt", "a"},
		{"./a.txt", "a"},
		{"dir//b.txt", "b"},
		{"dir/../a.txt", "a"},
		{"nowhere/../a.txt", "a"},
		{"outdir/../a.txt", "a"}, // cleaned first: the link is never followed
		{"..dots/d.txt", "d"},
		{"in", "b"},
		{"indir/b.txt", "b"},
		{"dir/up", "a"},
		{filepath.Join(top, "root/a.txt"), "a"},
		{filepath.Join(top, "link/a.txt"), "a"}, // by the name that was given
		{filepath.Join(top, "root/dir/../a.txt"), "a"},
		{"node_modules/x.js", "x"}, // hidden from listings only

		{"..", "PathEscape"},
		{"../secret.txt", "PathEscape"},
		{"dir/../../secret.txt", "PathEscape"},
		{"../root/a.txt", "PathEscape"},
		{"/", "PathEscape"},
		{"/etc/passwd", "PathEscape"},
		{filepath.Join(top, "secret.txt"), "PathEscape"},
		{filepath.Join(top, "rooted/secret.txt"), "PathEscape"},
		{filepath.Join(top, "root/../secret.txt"), "PathEscape"},
		{top + "/root/../root/a.txt", "a"},
		{"out", "PathEscape"},
		{"outdir/secret.txt", "PathEscape"},
		{"abs", "PathEscape"},
		{"absin", "PathEscape"}, // absolute links are never followed
		{"dir/deep/chain/secret.txt", "PathEscape"},
		{"rootlink/secret.txt", "PathEscape"},
		{"rootlink/root/a.txt", "PathEscape"},
		{filepath.Join(top, "root/out"), "PathEscape"},

		{"", "InvalidArgument"},
		{"a\x00b", "InvalidArgument"},
		{strings.Repeat("a/", 3000), "InvalidArgument"},
		{strings.Repeat("a", 300), "InvalidArgument"},
		{".", "InvalidArgument"},
		{"dir", "InvalidArgument"},
		{filepath.Join(top, "root"), "InvalidArgument"},
		{"pipe", "InvalidArgument"},
		{"loop", "InvalidArgument"},
		{"broken", "NotFound"},
		{"missing.txt", "NotFound"},
		{"a.txt/b", "NotFound"},
		{"~/a.txt", "NotFound"},
		{`..\secret.txt`, "NotFound"},
	} {
		if got := read(d, tt.path); got != tt.want {
			t.Errorf("reading %q: got %q, want %q", tt.path, got, tt.want)
		}
	}
}

func TestErrorsShowNoPathOutside(t *testing.T) {
	top := layout(t)
	d := open(t, filepath.Join(top, "root"))
	for _, path := range []string{"out", "outdir/secret.txt", "abs", "missing", "pipe", "loop", "dir"} {
		_, err := d.Open(path)
		if err == nil {
			t.Errorf("Open(%q): no error", path)
			continue
		}
		if strings.Contains(err.Error(), top) {
			t.Errorf("Open(%q): the error shows a path outside: %v", path, err)
		}
		if _, ok := errors.AsType[*workspace.Error](err); !ok {
			t.Errorf("Open(%q): error of type %T", path, err)
		}
	}
}

func TestDevicesAreRefused(t *testing.T) {
	d := open(t, "/dev")
	if got, want := read(d, "zero"), "InvalidArgument"; got != want {
		t.Errorf("reading a device: got %.20q, want %q", got, want)
	}
}

func TestOpenOfNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "x")
	for _, root := range []string{file, file + "/missing", filepath.Dir(file) + "/missing"} {
		if d, err := workspace.Open(root); err == nil {
			d.Close()
			t.Errorf("Open(%q) succeeded", root)
		}
	}
}

// TestSwappedLinks changes a name between a directory inside and a link to one that is outside or private, while it is read
// and written. Nothing behind the link is seen, and nothing outside changes. Writes through a link into .mcsh are not prevented.
func TestSwappedLinks(t *testing.T) {
	for name, target := range map[string]string{"outside": "../outside", "private": ".mcsh/audit"} {
		t.Run(name, func(t *testing.T) {
			top := layout(t)
			root := filepath.Join(top, "root")
			write(t, filepath.Join(root, "real/secret.txt"), "public")
			write(t, filepath.Join(root, ".mcsh/audit/secret.txt"), "secret")
			if err := os.Symlink(target, filepath.Join(root, "evil")); err != nil {
				t.Fatal(err)
			}
			d := open(t, root)
			h := workspace.NewHistory(d, workspace.HistoryOptions{})
			ctx, cancel := context.WithCancel(context.Background())
			var swapper sync.WaitGroup
			swapper.Go(func() {
				at := func(name string) string { return filepath.Join(root, name) }
				for ctx.Err() == nil {
					os.Rename(at("real"), at("swap"))
					os.Rename(at("swap"), at("real"))
					os.Rename(at("evil"), at("swap"))
					os.Rename(at("swap"), at("evil"))
				}
			})
			defer swapper.Wait()
			defer cancel()
			seen := map[string]int{}
			for i, end := 0, time.Now().Add(time.Second); time.Now().Before(end); i++ {
				seen[read(d, "swap/secret.txt")]++
				if list, _, err := d.ReadDir(ctx, "swap", workspace.ListOptions{}); err == nil {
					for _, e := range list {
						seen["size "+map[bool]string{true: "inside", false: "behind"}[e.Name != "secret.txt" || e.Size == int64(len("public"))]]++
					}
				}
				if i%20 > 0 || name == "private" { // writes there are not prevented: a program that swaps a link can write there itself
					continue
				}
				if err := put(ctx, h, "swap/new.txt", "new"); err == nil {
					seen["written"]++
				}
				if _, err := h.Delete(ctx, "swap/new.txt"); err == nil {
					seen["deleted"]++
				}
			}
			if seen["secret"]+seen["size behind"] > 0 {
				t.Errorf("read what is behind the link: %v", seen)
			}
			for _, dir := range []string{"outside", "root/.mcsh/audit"} {
				if list, err := os.ReadDir(filepath.Join(top, dir)); err != nil || len(list) != 1 {
					t.Errorf("%s has %v, %v", dir, list, err)
				}
			}
			t.Logf("seen: %v", seen)
		})
	}
}

// TestPipeSwappedIn has a pipe appear where a file was looked at: opening it must not wait for a writer.
func TestPipeSwappedIn(t *testing.T) {
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	write(t, at("file"), "x")
	if err := syscall.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, root)
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for ctx.Err() == nil {
			os.Rename(at("file"), at("f"))
			os.Rename(at("f"), at("file"))
			os.Rename(at("pipe"), at("f"))
			os.Rename(at("f"), at("pipe"))
		}
	})
	for ctx.Err() == nil {
		if got := read(d, "f"); got != "x" && got != "NotFound" && got != "InvalidArgument" {
			t.Errorf("got %q", got)
		}
	}
	swapper.Wait()
}

// TestRootIsNoDirectory names a root that is none: a pipe must not be waited for.
func TestRootIsNoDirectory(t *testing.T) {
	top := layout(t)
	for _, name := range []string{"root/pipe", "root/a.txt"} {
		d, err := workspace.Open(filepath.Join(top, name))
		if err == nil {
			d.Close()
			t.Fatalf("%s: opened", name)
		}
		if !strings.Contains(err.Error(), "it is not a directory") {
			t.Errorf("%s: got %q", name, err)
		}
	}
}

func TestReadDir(t *testing.T) {
	top := layout(t)
	root := filepath.Join(top, "root")
	write(t, filepath.Join(root, ".gitignore"), "*.log\n/dir\n")
	write(t, filepath.Join(root, "x.log"), "x")
	write(t, filepath.Join(root, ".git/config"), "x")
	d := open(t, root)
	list, _, err := d.ReadDir(t.Context(), ".", workspace.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		got = append(got, string(e.Type)+" "+e.Path)
		if e.Modified.IsZero() {
			t.Errorf("%s has no time", e.Path)
		}
	}
	want := []string{
		"directory ..dots", "file .gitignore", "file a.txt", "link abs", "link absin", "link broken", "link in",
		"link indir", "link loop", "link out", "link outdir", "other pipe", "link rootlink",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ReadDir (-want +got):\n%s", diff)
	}
	for path, want := range map[string]workspace.Kind{
		"a.txt": workspace.InvalidArgument, "missing": workspace.NotFound, "outdir": workspace.PathEscape,
		"..": workspace.PathEscape, "rootlink": workspace.PathEscape,
	} {
		if _, _, err := d.ReadDir(t.Context(), path, workspace.ListOptions{}); err == nil || workspace.KindOf(err) != want {
			t.Errorf("ReadDir(%q): error %v, want kind %s", path, err, want)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := d.ReadDir(cancelled, ".", workspace.ListOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("ReadDir with a cancelled context: error %v", err)
	}
}

func TestWalk(t *testing.T) {
	top := layout(t)
	d := open(t, filepath.Join(top, "root"))
	exclude, err := workspace.ParseIgnore("..dots/\n*.txt\n!b.txt\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		dir  string
		o    workspace.WalkOptions
		want string
	}{
		{"dir", workspace.WalkOptions{}, "dir/b.txt dir/deep dir/deep/c.txt dir/deep/chain -dir/deep() dir/up"},
		{"dir", workspace.WalkOptions{MaxDepth: 1}, "dir/b.txt dir/deep -dir/deep(max_depth) dir/up"},
		{"indir/deep", workspace.WalkOptions{}, "indir/deep/c.txt indir/deep/chain"},
		{".", workspace.WalkOptions{Skip: func(e workspace.Entry) bool { return exclude.Match(e.Path, e.Type == workspace.Directory) }}, "abs absin broken dir dir/b.txt dir/deep dir/deep/chain -dir/deep() dir/up -dir() in indir loop out outdir pipe rootlink"},
	} {
		var got []string
		err := d.Walk(t.Context(), tt.dir, tt.o, workspace.Visitor{
			Enter: func(e workspace.Entry) error { got = append(got, e.Path); return nil },
			Leave: func(e workspace.Entry, unread string) { got = append(got, "-"+e.Path+"("+unread+")") },
		})
		if err != nil {
			t.Errorf("Walk(%q): %v", tt.dir, err)
		}
		if diff := cmp.Diff(strings.Fields(tt.want), got); diff != "" {
			t.Errorf("Walk(%q) (-want +got):\n%s", tt.dir, diff)
		}
	}
}

// asked is a context that counts how often it is asked whether it has ended.
type asked struct {
	context.Context
	times int
}

func (a *asked) Err() error { a.times++; return a.Context.Err() }

// TestListingEnds: the patterns of a .gitignore may take long for each entry, so that a listing ends between two of them.
func TestListingEnds(t *testing.T) {
	root := t.TempDir()
	for i := range 50 {
		write(t, filepath.Join(root, fmt.Sprintf("f%d.log", i)), "x")
	}
	d := open(t, root)
	ctx, cancel := context.WithCancel(t.Context())
	entered := 0
	err := d.Walk(ctx, ".", workspace.WalkOptions{}, workspace.Visitor{Enter: func(workspace.Entry) error {
		entered++
		cancel()
		return nil
	}})
	if !errors.Is(err, context.Canceled) || entered != 1 {
		t.Errorf("a walk that was cancelled has entered %d entries: %v", entered, err)
	}
	write(t, filepath.Join(root, ".gitignore"), "*")
	counting := &asked{Context: t.Context()}
	if list, _, err := d.ReadDir(counting, ".", workspace.ListOptions{}); err != nil || len(list) > 0 || counting.times < 50 {
		t.Errorf("got %d entries, %v; the context was asked %d times", len(list), err, counting.times)
	}
}

func FuzzRel(f *testing.F) {
	root := f.TempDir()
	d, err := workspace.Open(root)
	if err != nil {
		f.Fatal(err)
	}
	defer d.Close()
	for _, s := range []string{".", "a/../b", "../x", root + "/a", "/", "//", "a\x00", "..", "...", "a/./b//c/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		rel, err := d.Rel(path)
		if err != nil {
			if _, ok := errors.AsType[*workspace.Error](err); !ok {
				t.Fatalf("error of type %T: %v", err, err)
			}
			return
		}
		if !filepath.IsLocal(rel) || filepath.Clean(rel) != rel {
			t.Fatalf("Rel(%q) = %q", path, rel)
		}
		if again, err := d.Rel(rel); err != nil || again != rel {
			t.Fatalf("Rel(%q) = %q, %v", rel, again, err)
		}
	})
}
