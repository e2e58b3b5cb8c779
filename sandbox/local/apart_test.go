//go:build linux

package local_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/local"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// dial starts a worker of a driver and speaks to it directly: no grammar looks at what it is sent.
func dial(t *testing.T, d sandbox.Driver) *wire.Client {
	t.Helper()
	rwc, err := d.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := wire.Dial(t.Context(), rwc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// outcome runs one command with empty input and returns everything it has said.
func outcome(t *testing.T, c *wire.Client, command wire.Command) string {
	t.Helper()
	command.Timeout = time.Minute
	id, err := wire.Prepare(wire.Chain{Memory: sandbox.Memory, Disk: sandbox.Disk, Commands: []wire.Command{command}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Run(id)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.End() // a command that cannot start takes no input
	said, _ := io.ReadAll(struct{ io.Reader }{s})
	o, err := s.Outcome()
	if err != nil {
		t.Fatal(err)
	}
	if f := o.Failure; f != nil {
		return string(said) + f.Stderr + f.Detail
	}
	return string(said)
}

// files lists the regular files under a directory.
func files(t *testing.T, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			found = append(found, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // its sort has just removed it
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestSessionsApart (S09): what one session keeps on the disk, the inputs of its commands and what its sort has put
// aside, no command of another session reads, though both belong to one user of the machine and its path is known.
func TestSessionsApart(t *testing.T) {
	scratch := t.TempDir()
	d := local.New(local.Options{Worker: []string{probeFile, "worker"}, Scratch: scratch})
	t.Cleanup(func() { d.Close() })
	a, b := dial(t, d), dial(t, d)

	input, err := wire.Prepare(wire.Chain{Keep: &wire.Input{Set: 1, Name: "mine", Disk: sandbox.Disk}})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := a.Run(input)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(kept, "canary of a\n")
	_ = kept.End()
	if o, err := kept.Outcome(); err != nil || o.Failure != nil {
		t.Fatalf("keeping: %+v, %v", o.Failure, err)
	}
	argv := []string{"sort", "-S1M"}
	id, err := wire.Prepare(wire.Chain{Memory: sandbox.Memory, Disk: sandbox.Disk, Commands: []wire.Command{{Name: "sort", Argv: argv, Timeout: time.Minute}}})
	if err != nil {
		t.Fatal(err)
	}
	sorting, err := a.Run(id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(struct{ io.Writer }{sorting}, strings.NewReader(strings.Repeat("canary of a\n", 1<<20))); err != nil {
		t.Fatal(err)
	}
	var found []string
	eventually(t, "the input and what sort has put aside are on the disk", func() bool {
		found = files(t, scratch)
		return len(found) >= 2 && slices.ContainsFunc(found, func(f string) bool { return filepath.Base(f) == "@mine" })
	})

	own := wire.Command{Name: "grep", Argv: []string{"grep", "-c", "", "@mine"}, Set: 1, Inputs: []string{"mine"}}
	if said := outcome(t, a, own); said != "1\n" {
		t.Errorf("its own session reads %q of the input, want one line", said)
	}
	if said := outcome(t, b, own); strings.Contains(said, "1\n") || said == "" {
		t.Errorf("another session reads %q of an input of that name", said)
	}
	for _, file := range found {
		if _, err := os.Stat(file); err != nil {
			t.Fatalf("%s is gone before anybody could read it", file)
		}
		said := outcome(t, b, wire.Command{Name: "grep", Argv: []string{"grep", "", file}})
		if strings.Contains(said, "canary") || !strings.Contains(said, "denied") {
			t.Errorf("another session reads %.100q of %s", said, filepath.Base(file))
		}
	}
	_ = sorting.Cancel()
}

// TestSortKilled (S10): when a run gets the error that its sort was killed, the sort's files are gone, and the worker works.
func TestSortKilled(t *testing.T) {
	scratch := t.TempDir()
	s, err := newPool(t, scratch).Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f, failed := sort(t, s)
	eventually(t, "sort has files", func() bool { return len(files(t, scratch)) > 0 })
	eventually(t, "sort is killed", func() bool {
		for pid := range children(t, os.Getpid()) {
			for child, name := range children(t, pid) {
				if name == "sort" {
					return syscall.Kill(child, syscall.SIGKILL) == nil
				}
			}
		}
		return false
	})
	var e *stages.Error
	if err := <-failed; !errors.As(err, &e) || !strings.Contains(e.Msg, "killed") {
		t.Errorf("got %v, want that sort was killed", err)
	}
	if left := files(t, scratch); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
	var out strings.Builder
	if err := f(t.Context(), strings.NewReader("b\na\n"), &out); err != nil || out.String() != "a\nb\n" {
		t.Errorf("after it got %q, %v", out.String(), err)
	}
}
