package sandboxtest

import (
	_ "embed"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/stages"
)

// workspaceJSON holds commands that name files.
//
//go:embed testdata/workspace.json
var workspaceJSON []byte

// A reading is a command that names files of a workspace, and how it ends.
type reading struct {
	Command string
	Args    []string
	In, Out string

	Dir      string // see [stages.Command]
	Searches bool
	Sorted   bool   // the order of Out is any
	Refused  string // a part of what the plan is refused with
	Fails    string // a part of what the command fails with
}

const secretText = "a secret that is outside\n"

// workspaceFiles are those of the workspace.
var workspaceFiles = map[string]string{
	"a.txt": "a 1\nb 2\n", "sub/c.txt": "b 9\n", "x=1": "eq\n", "empty": "", "x.json": "{\"a\":1}\n", "sub/y.json": `{"a":2}`,
	"-x": "dash\n", "ü.txt": "umlaut\n", ".mcsh/tmp/draft": "draft\n", ".filesystem/a.txt/00001": "old\n", ".hidden": "hid\n", "\xff\xfe": "no UTF-8\n",
}

// makeWorkspace returns a workspace with hostile entries, and a file beside it that nothing may read.
func makeWorkspace(t *testing.T) (dir, secret string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, secret = filepath.Join(base, "w"), filepath.Join(base, "secret")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(secret, []byte(secretText), 0o644))
	for name, text := range workspaceFiles {
		file := filepath.Join(dir, name)
		must(os.MkdirAll(filepath.Dir(file), 0o755))
		must(os.WriteFile(file, []byte(text), 0o644))
	}
	for name, target := range map[string]string{
		"inner": "sub/../a.txt", "out-link": "../secret", "absolute-link": secret, "dir-link": "..", "loop": "loop", "proc-link": "/proc/self/environ",
		"own-link": ".mcsh/tmp/draft", "own-dir": "sub/../.mcsh",
	} {
		must(os.Symlink(target, filepath.Join(dir, name)))
	}
	must(syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	if l, err := net.Listen("unix", filepath.Join(dir, "socket")); err == nil { // the path may be too long for one
		t.Cleanup(func() { l.Close() })
	} else {
		must(syscall.Mkfifo(filepath.Join(dir, "socket"), 0o644))
	}
	for parent := dir; parent != os.TempDir() && parent != "/"; parent = filepath.Dir(parent) {
		must(os.Chmod(parent, 0o755)) // workers may run as another user
	}
	return dir, secret
}

// RunWorkspace runs the contract of files. open returns a new driver whose commands may read those of dir.
func RunWorkspace(t *testing.T, open func(dir string) sandbox.Driver) {
	dir, secret := makeWorkspace(t)
	p := newPool(t, func() sandbox.Driver { return open(dir) }, sandbox.Options{Warm: -1})
	if !p.Report().Workspace {
		t.Fatal("the report says that there is no workspace")
	}
	var all []reading
	if err := json.Unmarshal(workspaceJSON, &all); err != nil {
		t.Fatal(err)
	}
	s := openSession(t, p)
	var group errgroup.Group
	group.SetLimit(concurrency)
	for _, r := range all {
		for i := range r.Args {
			r.Args[i] = strings.ReplaceAll(r.Args[i], "{secret}", secret)
		}
		group.Go(func() error {
			r.test(t, p, s)
			return nil
		})
	}
	_ = group.Wait() // the functions return nil
	t.Run("Huge", func(t *testing.T) { testHuge(t, dir, p, s) })
	t.Run("Each", func(t *testing.T) { testEach(t, dir, s) })
	t.Run("EachMixed", func(t *testing.T) { testEachMixed(t, s) })
	t.Run("Braces", func(t *testing.T) { testBraces(t, dir, p, s) })
	t.Run("Many", func(t *testing.T) { testMany(t, p, s) })
}

// huge is the size of a file that takes no room on a disk, and could be in nobody's memory.
const huge = 1 << 30

// testHuge reads a little of a large file.
func testHuge(t *testing.T, dir string, p *sandbox.Pool, s stages.Session) {
	f, err := os.Create(filepath.Join(dir, "huge"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("[1,\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(huge); err != nil {
		t.Fatal(err)
	}
	for _, r := range []reading{
		{Command: "head", Args: []string{"-n", "1", "huge"}, Out: "[1,\n"},
		{Command: "tail", Args: []string{"-c", "2", "huge"}, Out: "\x00\x00"},
		{Command: "sed", Args: []string{"-n", "1{p;q}", "huge"}, Out: "[1,\n"},
		{Command: "jq", Args: []string{"-c", "-n", "first(inputs)", "x.json", "huge"}, Out: "{\"a\":1}\n"},
	} {
		r.test(t, p, s)
	}
}

// testEach is what each item of a for_each reads: the file as it is by then, also by a program whose process is kept
// for items without files.
func testEach(t *testing.T, dir string, s stages.Session) {
	c := command("jq", "-c", ".n", "each.json")
	c.Each = true
	if m, err := s.Map(c, nil); m != nil || err != nil {
		t.Errorf("all items in one process: %v, %v, want none", m != nil, err)
	}
	f, err := s.Prepare([]stages.Command{c}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"1", "2", "3"} {
		file := filepath.Join(dir, "each.json")
		if err := os.WriteFile(file+".new", []byte(`{"n":`+n+`}`), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
		if out, err := run(t.Context(), f, "item"); err != nil || out != n+"\n" {
			t.Errorf("item %s: %q, %v", n, out, err)
		}
	}
}

// testEachMixed runs a program on a file for each item, and the same program with the same arguments on its standard input:
// which of the two reads the file does not change from one item to the next, nor afterwards.
func testEachMixed(t *testing.T, s stages.Session) {
	onFile, onInput := command("jq", "-c", ".", "x.json"), command("jq", "-c", ".")
	for _, chain := range [][]stages.Command{{each(onFile), each(onInput)}, {each(onFile), onInput}} {
		f := prepare(t, s, nil, chain...)
		for i := range 10 {
			if out, err := run(t.Context(), f, "item"); err != nil || out != workspaceFiles["x.json"] {
				t.Errorf("item %d: %q, %v, want %q", i, out, err, workspaceFiles["x.json"])
			}
		}
	}
	for _, c := range []stages.Command{onInput, each(onInput)} {
		if out, err := run(t.Context(), prepare(t, s, nil, c), "[2]"); err != nil || out != "[2]\n" {
			t.Errorf("afterwards: %q, %v", out, err)
		}
	}
}

// testBraces names files as a placeholder of the gateway might be written: nothing in a name is replaced, so ls lists the
// directory of that name and not the gateway's own.
func testBraces(t *testing.T, dir string, p *sandbox.Pool, s stages.Session) {
	name := filepath.Join(dir, ".mc{scratch}sh")
	if err := os.Mkdir(name, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(name, "{scratch}"), []byte("b\na\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, r := range []reading{
		{Command: "ls", Args: []string{".mc{scratch}sh"}, Out: "{scratch}\n"},
		{Command: "sort", Args: []string{".mc{scratch}sh/{scratch}"}, Out: "a\nb\n"},
	} {
		r.test(t, p, s)
	}
}

// testMany names more files than a process can have open.
func testMany(t *testing.T, p *sandbox.Pool, s stages.Session) {
	fifty := slices.Repeat([]string{"x.json"}, 50)
	for _, name := range []string{"jq", "paste", "sort", "rg"} {
		args := map[string][]string{"jq": {"-c", "."}, "paste": {"-s"}, "rg": {"-I", "a"}}[name]
		out := strings.Repeat("{\"a\":1}\n", 50)
		reading{Command: name, Args: slices.Concat(args, fifty), Out: out}.test(t, p, s)
	}
	_, err := check(t, p, command("wc", slices.Repeat([]string{"a.txt"}, 51)...))
	if err == nil || !strings.Contains(err.Error(), "more than 50 files") {
		t.Errorf("more than fifty files: %v", err)
	}
}

func (r reading) test(t *testing.T, p *sandbox.Pool, s stages.Session) {
	if !slices.ContainsFunc(p.Report().Programs, func(a sandbox.Availability) bool { return a.Name == r.Command && a.Refusal == "" }) {
		return // this machine lacks it
	}
	c := command(r.Command, r.Args...)
	c.Dir, c.Searches = r.Dir, r.Searches
	if _, err := check(t, p, c); err != nil {
		if e := asError(t, err); r.Refused == "" || !strings.Contains(e.Msg, r.Refused) {
			t.Errorf("%s %q was refused: %v, want %q", r.Command, r.Args, err, r.Refused)
		}
		return
	}
	if r.Refused != "" {
		t.Errorf("%s %q was accepted, want %q", r.Command, r.Args, r.Refused)
		return
	}
	f, err := s.Prepare([]stages.Command{c}, nil)
	if err != nil {
		t.Errorf("%s %q: %v", r.Command, r.Args, err)
		return
	}
	out, err := run(t.Context(), f, r.In)
	out = strings.ToValidUTF8(out, "\ufffd")
	if r.Sorted {
		lines := slices.Sorted(strings.Lines(out))
		out = strings.Join(lines, "")
	}
	switch {
	case strings.Contains(out, secretText):
		t.Errorf("%s %q has read the file outside", r.Command, r.Args)
	case r.Fails == "" && (err != nil || out != r.Out):
		t.Errorf("%s %q: got %q, %v, want %q", r.Command, r.Args, out, err, r.Out)
	case r.Fails != "" && (err == nil || !strings.Contains(err.Error(), r.Fails)):
		t.Errorf("%s %q: got %q, %v, want a failure with %q", r.Command, r.Args, out, err, r.Fails)
	}
}
