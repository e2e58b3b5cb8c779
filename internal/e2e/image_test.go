//go:build linux

package e2e

import (
	"cmp"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
)

// asToolHive is how ToolHive starts a container: without capabilities, and without the socket of an engine. The
// variable stands for what a gateway must keep to itself.
var asToolHive = []string{"--cap-drop=ALL", "--security-opt=label:disable", "--env=TOKEN=canary-of-the-gateway"}

// sorted is a pipeline with a tool, jq, and a command that needs a file.
var sorted = []object{
	toolStage("demo", "list_orders", object{"status": "open"}),
	command("jq", "-r", ".orders[].customer_id"),
	command("sort", "-r"),
	command("uniq"),
	command("head", "-n", "1"),
}

// projectImage is the image that .ci/run image makes, or the one that MCSH_TEST_IMAGE names.
func projectImage(t *testing.T) string {
	t.Helper()
	image := cmp.Or(os.Getenv("MCSH_TEST_IMAGE"), docker.DefaultImage(""))
	if out, err := exec.Command("docker", "image", "inspect", "--format", "ok", image).CombinedOutput(); err != nil {
		parttest.Missing(t, "no engine has the image %s, which .ci/run image makes: %v: %s", image, err, out)
	}
	return image
}

// TestImage serves from the image, in the ways in which it is started by others. Commands run in the local sandbox.
func TestImage(t *testing.T) {
	image := projectImage(t)
	for _, test := range []struct {
		name  string
		flags []string
	}{
		{"as the image says", nil},
		{"root", []string{"--user=0:0"}},
		// As Kubernetes starts what is restricted, and with nothing mounted.
		{"read-only", []string{"--user=1000:1000", "--read-only", "--security-opt=no-new-privileges"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			id := docked(t, append(test.flags, "--interactive", image)...)
			session := connect(t, &mcp.CommandTransport{Command: exec.Command("docker", "start", "--attach", "--interactive", id)}, versions[0], nil)
			defer session.Close()
			wantSorted(t, session)
			res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_available_shell_commands"})
			if err != nil {
				t.Fatal(err)
			}
			if text := textOf(res); !strings.Contains(text, "Sandbox: local, profile ") || strings.Contains(text, ": not available: ") {
				t.Errorf("got %q, want all commands in the local sandbox", text)
			}
			wantHidden(t, id)
		})
	}
	t.Run("streamable HTTP", func(t *testing.T) {
		t.Parallel()
		id := docked(t, "--publish=127.0.0.1::8808", image, "--listen", "0.0.0.0:8808", "--no-auth")
		shell(t, "docker", "start", id)
		var address string
		until(t, "the port is open and the gateway listens", func() bool {
			out, err := exec.Command("docker", "port", id, "8808").Output()
			address = strings.TrimSpace(string(out))
			logs, _ := exec.Command("docker", "logs", id).CombinedOutput() // they are empty before
			return err == nil && address != "" && strings.Contains(string(logs), " listens on ")
		})
		wantSorted(t, connectHTTP(t, "http://"+address+"/mcp", versions[1], nil))
		wantHidden(t, id)
	})
}

// docked makes a container, which ends with the test, and returns its id.
func docked(t *testing.T, args ...string) string {
	t.Helper()
	args = append(append([]string{"create"}, asToolHive...), args...)
	id := strings.TrimSpace(shell(t, "docker", args...))
	t.Cleanup(func() {
		if out, err := exec.Command("docker", "rm", "--force", id).CombinedOutput(); err != nil {
			t.Errorf("removing the container: %v: %s", err, out)
		}
	})
	return id
}

// shell is what a program writes, which must succeed.
func shell(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	return string(out)
}

func wantSorted(t *testing.T, session *mcp.ClientSession) {
	t.Helper()
	if text := mustExecute(t, session, sorted...); !strings.HasPrefix(text, "c-0") {
		t.Errorf("got %q, want a customer", text)
	}
}

// wantHidden looks at the gateway, the first process of the container, as another process of its user: its environment
// must not be read.
func wantHidden(t *testing.T, id string) {
	t.Helper()
	out, err := exec.Command("docker", "exec", id, "cat", "/proc/1/environ").CombinedOutput()
	if err == nil || strings.Contains(string(out), "canary") || !strings.Contains(string(out), "Permission denied") {
		t.Errorf("another process read the gateway's environment: %q, %v", out, err)
	}
}
