//go:build linux

package worker

import (
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

// TestPure is a kernel without Landlock: only what is linked in may run.
func TestPure(t *testing.T) {
	tools, found := locate(nil, jail.Support{Seccomp: true})
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
	tools, found := locate([]programs.Program{{Name: "zz", Bin: "no-such-program"}}, jail.Support{Landlock: 7})
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
