//go:build linux

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
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

// nodeDir is the node_modules where .ci/run parts has put the parts from npm.
func nodeDir(t *testing.T, parts ...string) string {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		parttest.Missing(t, "node is not installed; .ci/run parts installs it")
	}
	return parttest.Packages(t, parts...)
}

// nodeServer is the entry of a server from npm.
func nodeServer(t *testing.T, part string, args ...string) object {
	t.Helper()
	return object{"command": "node", "args": append([]string{nodeScript(t, part)}, args...)}
}

// nodeScript is the program of a package from npm.
func nodeScript(t *testing.T, part string) string {
	t.Helper()
	dir := filepath.Join(nodeDir(t, part), part)
	text, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var one struct{ Bin string }
	if json.Unmarshal(text, &one) == nil {
		return filepath.Join(dir, one.Bin)
	}
	var many struct{ Bin map[string]string }
	if err := json.Unmarshal(text, &many); err != nil {
		t.Fatal(err)
	}
	if script := many.Bin[path.Base(part)]; script != "" { // of several
		return filepath.Join(dir, script)
	}
	if len(many.Bin) != 1 {
		t.Fatalf("%s has not one program: %v", part, many.Bin)
	}
	for _, script := range many.Bin {
		part = filepath.Join(dir, script)
	}
	return part
}

func goServer(t *testing.T, name string) object {
	return object{"command": parttest.GoProgram(t, name)}
}

// goHTTP starts a server of a Go module over HTTP and returns its address.
func goHTTP(t *testing.T, name string) string {
	t.Helper()
	path := parttest.GoProgram(t, name)
	return listens(t, func(address string) *exec.Cmd { return exec.Command(path, "-http", address) })
}

// child is the entry of a server of this test binary.
func child(t *testing.T, name string) object {
	t.Helper()
	c := mcptest.Child(t, name)
	return object{"command": c.Name, "env": c.Env}
}
