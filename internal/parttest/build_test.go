package parttest_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// TestBuild: who has a program keeps it while another checkout builds another one, and a user without a home has one, too.
func TestBuild(t *testing.T) {
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		path, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(name, strings.TrimSpace(string(path)))
	}
	build := func(dir string) []byte {
		t.Helper()
		err := parttest.Build(dir, "cmd/mcsh-worker")
		program, wrong := os.ReadFile(filepath.Join(dir, "mcsh-worker"))
		if err != nil || wrong != nil {
			t.Fatal(err, wrong)
		}
		return program
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	one, another := filepath.Join(t.TempDir(), "made"), t.TempDir()
	first := build(one)
	t.Setenv("GOFLAGS", os.Getenv("GOFLAGS")+" -ldflags=-s")
	if bytes.Equal(build(another), first) {
		t.Error("the other program is the same one")
	}
	if program, err := os.ReadFile(filepath.Join(one, "mcsh-worker")); err != nil || !bytes.Equal(program, first) {
		t.Errorf("the first program has changed: %v", err)
	}
	build(one)
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	build(one)
}
