//go:build linux

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
)

// object is JSON written in Go.
type object = map[string]any

// stage and its kin write pipelines.
func toolStage(server, name string, args object) object {
	return object{"type": "tool", "server": server, "name": name, "args": args}
}

func command(name string, args ...string) object {
	args = append([]string{}, args...) // none is an empty array
	return object{"type": "command", "command": name, "args": args}
}

// with returns a stage with more fields.
func with(stage object, field string, value any) object {
	merged := object{field: value}
	for k, v := range stage {
		merged[k] = v
	}
	return merged
}

func encode(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// nodeDir is where .ci/run parts has put the parts from npm.
func nodeDir(t *testing.T, parts ...string) string {
	t.Helper()
	root := os.Getenv("MCSH_TEST_NODE")
	if root == "" {
		t.Skip("MCSH_TEST_NODE does not name a directory with node_modules; .ci/run parts makes one")
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed; .ci/run parts installs it")
	}
	for _, part := range parts {
		if _, err := os.Stat(filepath.Join(root, "node_modules", part)); err != nil {
			t.Skipf("the npm package %s is not in $MCSH_TEST_NODE; .ci/run parts puts it there", part)
		}
	}
	return root
}

// nodeServer is the entry of a server from npm.
func nodeServer(t *testing.T, part string, args ...string) object {
	t.Helper()
	script := filepath.Join(nodeDir(t, part), "node_modules", part, "dist", "index.js")
	return object{"command": "node", "args": append([]string{script}, args...)}
}

// child is the entry of a server of this test binary.
func child(t *testing.T, name string) object {
	t.Helper()
	c := mcptest.Child(t, name)
	return object{"command": c.Name, "env": c.Env}
}
