//go:build linux

package local_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/stages"
)

// TestCloseOutlasts: when a worker has been closed, the applets are gone too that it had only begun to start.
func TestCloseOutlasts(t *testing.T) {
	p := newPool(t, t.TempDir())
	for range 20 {
		s, err := p.Open(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		workers := slices.Collect(maps.Keys(children(t, os.Getpid())))
		if len(workers) != 1 {
			t.Fatalf("the workers are %v, want one", workers)
		}
		jq := stages.Command{Name: "jq", Args: []string{"."}}
		if _, err := s.Prepare([]stages.Command{jq, jq, jq, jq}, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if left := appletsOf(t, workers[0]); left != nil {
			t.Fatalf("applets are left: %v", left)
		}
	}
}

// appletsOf returns the applets that a worker has started, even when it is gone.
func appletsOf(t *testing.T, worker int) (found []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range lines {
		line, _ := os.ReadFile(file) // it may have ended meanwhile
		if words := strings.Split(string(line), "\x00"); slices.Contains(words, "applet") && slices.Contains(words, strconv.Itoa(worker)) {
			found = append(found, file)
		}
	}
	return found
}
