//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const engineSocket = "/var/run/docker.sock"

// TestSandboxComesLater: a gateway that starts before the container engine refuses commands and says why, and takes
// them when the engine is there.
func TestSandboxComesLater(t *testing.T) {
	projectImage(t)
	if _, err := os.Stat(engineSocket); err != nil {
		t.Skip("the engine is elsewhere")
	}
	socket := filepath.Join(t.TempDir(), "engine.sock")
	p := mcsh(t, object{"demo": object{"builtin": "demo"}}, "serve",
		"--sandbox", "auto", "--sandbox-host", "unix://"+socket, "--sandbox-require", "no-network")
	session := connect(t, &mcp.CommandTransport{Command: p.Cmd}, versions[0], nil)
	defer p.leftNothing(t)
	defer session.Close()
	text, failed := execute(t, session, sorted...)
	if !failed || !strings.Contains(text, "no container engine answers") || !strings.Contains(text, "no-network") {
		t.Errorf("got %q, want the reasons why no command runs", text)
	}
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_available_shell_commands"})
	if err != nil {
		t.Fatal(err)
	}
	if text := textOf(res); !strings.Contains(text, "no container engine answers") {
		t.Errorf("got %q, want the reason", text)
	}
	if !strings.Contains(p.stderr.String(), "command stages are refused") {
		t.Errorf("got %q on standard error, want that it is said", p.stderr.String())
	}
	if err := os.Symlink(engineSocket, socket); err != nil {
		t.Fatal(err)
	}
	until(t, "the engine is tried again", func() bool {
		_, failed := execute(t, session, sorted...)
		return !failed
	})
	wantSorted(t, session)
}
