//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// patience is how long a test waits for what happens soon, also on a slow machine that does much else.
const patience = 2 * time.Minute

// mcshVariable holds the path of mcsh as TestMain has built it.
const mcshVariable = "MCSH_E2E_BINARY"

// TestMain builds the binaries once. A process that a test starts as an upstream is this binary too.
func TestMain(m *testing.M) {
	mcptest.RunChild(children)
	parttest.Overlap(6)
	os.Exit(withBinaries(m.Run))
}

func withBinaries(tests func() int) int {
	dir, err := os.MkdirTemp("", "mcsh-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "making a directory for the binaries:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := parttest.Build(dir, "cmd/mcsh", "cmd/mcsh-worker"); err != nil {
		fmt.Fprintln(os.Stderr, "building the binaries:", err)
		return 1
	}
	os.Setenv("MCSH_STATE", "off") // what one test teaches is no business of another's
	os.Setenv(mcshVariable, filepath.Join(dir, "mcsh"))
	return tests()
}

func mcshPath() string { return os.Getenv(mcshVariable) }
