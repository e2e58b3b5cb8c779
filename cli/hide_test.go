//go:build linux

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestHidden (S19): a process of the gateway's own user cannot read the gateway's environment.
func TestHidden(t *testing.T) {
	t.Parallel() // it waits
	dir := t.TempDir()
	binary := filepath.Join(dir, "mcsh") // where another user may run it
	program, err := os.ReadFile(oneBinary(t))
	if err == nil {
		err = os.WriteFile(binary, program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	var user *syscall.Credential // root would see everything
	if os.Getuid() == 0 {
		user = &syscall.Credential{Uid: 65534, Gid: 65534}
		for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	mcsh := exec.Command(binary, "serve", "--sandbox", "off")
	mcsh.Env = []string{"TOKEN=canary-of-the-gateway", "HOME=/nonexistent"}
	mcsh.Dir = "/"
	mcsh.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	in, err := mcsh.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := mcsh.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := mcsh.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); _ = mcsh.Wait() }()
	if _, err := fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`); err != nil {
		t.Fatal(err)
	}
	if n, err := out.Read(make([]byte, 1)); n != 1 { // it serves now
		t.Fatal(err)
	}
	look := exec.Command("/bin/cat", fmt.Sprintf("/proc/%d/environ", mcsh.Process.Pid))
	look.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	said, err := look.CombinedOutput()
	if err == nil || strings.Contains(string(said), "canary") || !strings.Contains(string(said), "ermission denied") {
		t.Errorf("got %q, %v, want that permission is denied", said, err)
	}
}
