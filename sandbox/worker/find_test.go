//go:build linux

package worker

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

// TestPure is a kernel without Landlock: only what is linked in may run.
func TestPure(t *testing.T) {
	tools, found := hostInfo{Support: jail.Support{Seccomp: true}}.locate(nil)
	for name := range tools {
		if p, _ := find(name, nil); p.Ready == nil {
			t.Errorf("%s runs without Landlock", name)
		}
	}
	if len(tools) == 0 {
		t.Error("nothing runs without Landlock, want jq")
	}
	for _, f := range found {
		if p, _ := programs.Find(f.Name); p.Bin != "" && !strings.Contains(f.Refusal, "Landlock") {
			t.Errorf("%s: got refusal %q, want one that names Landlock", f.Name, f.Refusal)
		}
	}
}

func TestMissing(t *testing.T) {
	tools, found := hostInfo{Support: jail.Support{Landlock: 7}}.locate([]programs.Program{{Name: "zz", Bin: "no-such-program"}})
	if _, ok := tools["zz"]; ok {
		t.Error("a program that does not exist can run")
	}
	if last := found[len(found)-1]; last.Name != "zz" || !strings.Contains(last.Refusal, "not installed") {
		t.Errorf("got %+v, want a refusal", last)
	}
}

// TestCellAgain: a jail that could not be built is not kept for the next process.
func TestCellAgain(t *testing.T) {
	if jail.LandlockABI() == 0 {
		t.Skip("this kernel has no Landlock")
	}
	cat := &tool{located: located{File: "/usr/bin/cat"}}
	for range 2 {
		if c, _, err := cat.cell("", "", []string{"/etc/hostname/x"}, nil); c != nil || err == nil {
			t.Errorf("a jail that cannot be built: %v, %v", c, err)
		}
	}
	c, private, err := cat.cell("", "", nil, nil)
	if c == nil || private || err != nil {
		t.Fatalf("the next one: %v, private %v, %v", c, private, err)
	}
	t.Cleanup(c.Close)
	if again, _, err := cat.cell("", "", nil, nil); again != c || err != nil {
		t.Errorf("the one after: %p, %v, want the same %p", again, err, c)
	}
}

// TestAdded: the file of a program that an operator adds is a program of the operator's, whose loader is one of the system.
func TestAdded(t *testing.T) {
	const program = "/usr/bin/cat"
	text, err := os.ReadFile(program)
	if err != nil {
		t.Skip(err)
	}
	loader, err := loaderOf(program)
	if err != nil || loader == "" {
		t.Skipf("%s has no loader: %v", program, err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	foreign := "/tmp" + strings.Repeat("/", len(loader)-len("/tmpx")) + "x"
	for name, data := range map[string]string{
		"plain/tool": string(text), "plain/data": string(text), "plain/everybody": string(text), "plain/sticky": string(text),
		"plain/script": "#!/bin/sh\n", "plain/empty": "", "plain/loader": strings.ReplaceAll(string(text), loader, foreign),
		"work/tool": string(text), "open/tool": string(text), "shared/x": "",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(data), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"plain/link": "../plain//./tool", "plain/absolute": filepath.Join(dir, "plain/tool"), "plain/loop": "loop",
		"plain/out": "../work/tool", "plain/through": "../work/plain/tool", "work/plain": "../plain",
		"open/link": "../plain/tool", "plain/to-open": "../open/link", "shared/link": "../plain/tool",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{
		"plain/data": 0o644, "plain/everybody": 0o777, "plain/sticky": 0o777 | os.ModeSticky,
		"open": 0o777, "shared": 0o777 | os.ModeSticky,
	} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	const inWorkspace, none = "it lies in the workspace", "there is no executable file"
	everybody := "everybody may write " + dir
	for name, want := range map[string]string{
		"plain/tool": "", "plain/link": "", "plain/absolute": "", "shared/link": "",
		"work/tool": inWorkspace, "plain/out": inWorkspace, "work/plain/tool": inWorkspace, "plain/through": inWorkspace,
		"plain/everybody": everybody + "/plain/everybody", "plain/sticky": everybody + "/plain/sticky",
		"open/tool": everybody + "/open", "open/link": everybody + "/open", "plain/to-open": everybody + "/open",
		strings.Repeat("plain/../", 200) + "plain/tool": "has more than",
		"plain/script": "is no ELF program", "plain/empty": "is no ELF program",
		"plain/loader": "wants the loader " + foreign + ", which is none of the system's",
		"plain/none":   none, "plain/data": none, "plain/loop": none, "plain": none,
	} {
		s := hostInfo{Support: jail.Support{Landlock: 7}, Workspace: filepath.Join(dir, "work")}
		tools, found := s.locate([]programs.Program{{Name: "zz", Bin: dir + "/" + name}})
		at, runs := tools["zz"]
		refusal := found[len(found)-1].Refusal
		if runs != (want == "") || !strings.Contains(refusal, want) || runs && at.File != filepath.Join(dir, "plain/tool") {
			t.Errorf("%s: got %+v, refusal %q, want %q", name, at, refusal, want)
		}
	}
}
