//go:build !race

package preview_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestGolden runs testdata/*.txtar. Each file says in its first lines why it exists, and holds the options, the input
// (a file "input", or "input.go" with one quoted Go string) and the wanted result.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata: got %d files, error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { checkGolden(t, file) })
	}
}
