//go:build linux

package control

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stranger is a variable with the address to which the test's binary connects as somebody else.
const stranger = "CONTROL_TEST_STRANGER"

func TestMain(m *testing.M) {
	if address := os.Getenv(stranger); address != "" {
		conn, err := net.Dial("unix", address)
		if err == nil {
			_, err = io.Copy(os.Stdout, conn)
		}
		if err != nil {
			os.Stderr.WriteString(err.Error())
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestPeer: both sides refuse a process of another user, even if it could reach the socket.
func TestPeer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	dir, err := os.MkdirTemp("/tmp", "mcsh-control-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.ReadFile("/proc/self/exe")
	binary, address := filepath.Join(dir, "stranger"), filepath.Join(dir, "a.sock")
	if err = errors.Join(err, os.Chmod(dir, 0o755), os.WriteFile(binary, self, 0o755)); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", address)
	if err == nil {
		err = os.Chmod(address, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		ConnState: (&gate{open: map[net.Conn]bool{}}).follow, ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "admitted") }),
	}
	defer server.Close()
	go func() { _ = server.Serve(l) }() // until Close
	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Dir, cmd.Env = "/", []string{stranger + "=" + address}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "belongs to user 65534, and this is user 0") {
		t.Errorf("the stranger gets %q, %v", out, err)
	}
	if res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(out))), nil); err != nil || res.StatusCode != http.StatusForbidden {
		t.Errorf("the stranger gets %q, %v", out, err)
	}
	conn, err := net.Dial("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := checkPeer(conn); err != nil {
		t.Errorf("this user is refused: %v", err)
	}
	_, err = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
	if answer, wrong := io.ReadAll(conn); err != nil || wrong != nil || !strings.HasSuffix(string(answer), "admitted") {
		t.Errorf("after the stranger this user gets %q, %v, %v", answer, err, wrong)
	}
}
