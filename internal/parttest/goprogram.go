package parttest

import (
	"os"
	"path/filepath"
	"testing"
)

// GoProgram is a program that .ci/run parts has built from a module of somebody else (internal/mcptest/goparts).
func GoProgram(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(os.Getenv("MCSH_TEST_GO"), name)
	if _, err := os.Stat(path); err != nil || !filepath.IsAbs(path) {
		Missing(t, "MCSH_TEST_GO does not name a directory with %s; .ci/run parts makes one", name)
	}
	return path
}
