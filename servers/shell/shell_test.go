package shell_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/servers/servertest"
	"github.com/mcsh-dev/mcsh/servers/shell"
)

// A reply is the result of a command line.
type reply struct {
	Command    string `json:"command"`
	Output     string `json:"output"`
	ReturnCode int    `json:"return_code"`
	Reason     string `json:"reason"`
	Omitted    int64  `json:"omitted_bytes"`
}

const denied = "Command denied by security policy"

// open opens a server in a new directory, and returns a function that runs a line in it.
func open(t testing.TB, o shell.Options) func(line string) reply {
	t.Helper()
	if o.WorkingDir == "" {
		o.WorkingDir = t.TempDir()
	}
	if o.Environ == nil {
		o.Environ = map[string]string{"PATH": os.Getenv("PATH"), "HOME": o.WorkingDir, "LANG": "C.UTF-8"}
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	server, err := shell.New(o)
	c := servertest.Connect(t, server, err)
	return func(line string) reply {
		t.Helper()
		r := c.Call(t, "execute_command", texts.JSON(map[string]string{"command": line}))
		if r.Error {
			t.Fatalf("%.200q: %s", line, r.Text)
		}
		var got reply
		if err := json.Unmarshal([]byte(r.Text), &got); err != nil {
			t.Fatal(err)
		}
		if got.Command != line {
			t.Errorf("the command came back as %.200q, want %.200q", got.Command, line)
		}
		return got
	}
}

// params are those of a call of execute_command.
func params(line string) *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: "execute_command", Arguments: map[string]string{"command": line}}
}

// program returns the path of a shell, or skips the test.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("there is no %s: %v", name, err)
	}
	return path
}

// write writes a file in dir.
func write(t testing.TB, dir, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// exists reports whether there is a file.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}
