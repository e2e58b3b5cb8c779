//go:build linux

package e2e

import (
	"os/exec"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// playwright is the entry of playwright-mcp with the distribution's browser.
func playwright(t *testing.T) object {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		parttest.Missing(t, "chromium is not installed; .ci/run parts installs it")
	}
	server := nodeServer(t, "@playwright/mcp", "--headless", "--no-sandbox", "--isolated", "--browser", "chromium",
		"--executable-path", chromium, "--output-dir", t.TempDir())
	// It leaves a directory behind however it ends.
	return with(server, "env", object{"TMPDIR": t.TempDir()})
}
