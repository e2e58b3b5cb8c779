package pipelines_test

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mcsh-dev/mcsh/pipelines"
)

// fullVariable makes the test binary the process whose disk is full.
const fullVariable = "MCSH_TEST_FULL_DISK"

// TestFullDisk: when nothing more can be written, a save fails and everything is as it was. A limit of a process stands for the
// full disk.
func TestFullDisk(t *testing.T) {
	if os.Getenv(fullVariable) == "" {
		child := exec.Command(os.Args[0], "-test.run=^TestFullDisk$")
		child.Env = append(os.Environ(), fullVariable+"=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	dir, text := t.TempDir(), saying("after")
	s := pipelines.NewStore(dir)
	if _, err := s.Save(t.Context(), "a", saying("before"), 0, ann); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var unlimited syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &unlimited); err != nil {
		t.Fatal(err)
	}
	var saved []uint64
	for size := uint64(0); size < 2000; size += 20 {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: unlimited.Max}); err != nil {
			t.Fatal(err)
		}
		_, err := s.Save(t.Context(), "a", text, 1, ann)
		if rerr := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &unlimited); rerr != nil {
			t.Fatal(rerr)
		}
		if err == nil {
			saved = append(saved, size)
			break
		}
		if want := filepath.Join(dir, "a.json") + ": nothing was saved: file too large"; err.Error() != want {
			t.Errorf("with %d bytes the error is %q, want %q", size, err, want)
		}
		p, err := pipelines.NewStore(dir).Get(t.Context(), "a", pipelines.Everybody)
		if err != nil || p.Version.Number != 1 || p.Definition.Description != "before" || !p.Version.Private() {
			t.Errorf("with %d bytes it is %+v, %v", size, p, err)
		}
		if list, err := s.Versions(t.Context(), "a"); err != nil || len(list) != 1 {
			t.Errorf("with %d bytes the versions are %v, %v", size, list, err)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 2 {
			t.Errorf("with %d bytes the directory has %q, %v", size, left, err)
		}
		if left, err := os.ReadDir(filepath.Join(dir, ".versions", "a")); err != nil || len(left) != 1 {
			t.Errorf("with %d bytes the directory of versions has %v, %v", size, left, err)
		}
	}
	if len(saved) != 1 || saved[0] < uint64(len(text)) {
		t.Errorf("it was saved with %d bytes", saved)
	}
}
