package sandboxtest

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// A canary is what no command may get hold of, run, reach or leave behind.
type canary struct {
	secret  string
	file    string // holds the secret
	program string // leaves a trace when it runs
	out     string // must not be written
	port    int    // nobody may connect to it
	calls   atomic.Int64
	traces  []string
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	dir := t.TempDir()
	c := &canary{
		secret: "canary-7f3a91-secret", file: filepath.Join(dir, "canary"), program: filepath.Join(dir, "program"),
		out: filepath.Join(dir, "out"),
	}
	os.Setenv("MCSH_TEST_CANARY", c.secret) // for good: several tests that overlap need it
	ran := filepath.Join(dir, "ran")
	for _, f := range []string{c.out, ran, "/tmp/pwn", "/tmp/x", "/pwn"} {
		if _, err := os.Lstat(f); err == nil {
			t.Logf("%s is there already: the test cannot see whether an attack makes it", f)
			continue
		}
		c.traces = append(c.traces, f)
	}
	for file, text := range map[string]string{
		c.file: c.secret + "\n", c.program: "#!/bin/sh\necho " + c.secret + "\n: > " + ran + "\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c.port = l.Addr().(*net.TCPAddr).Port
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // the test is over
			}
			c.calls.Add(1)
			conn.Close()
		}
	}()
	return c
}

// words are what stands for the canary in attacks, each with what it stands for.
func (c *canary) words() []string {
	return []string{"{canary}", c.file, "{program}", c.program, "{out}", c.out, "{port}", strconv.Itoa(c.port)}
}

// check looks at what an attack has said and left behind.
func (c *canary) check(t *testing.T, id, said string) {
	t.Helper()
	for _, secret := range []string{c.secret, "root:x:0:0", "uid=0(", "uid=65534("} {
		if strings.Contains(said, secret) {
			t.Errorf("%s: got hold of %q: %.300q", id, secret, said)
		}
	}
	for _, f := range c.traces {
		if _, err := os.Lstat(f); err == nil {
			t.Errorf("%s: made %s", id, f)
		}
	}
	if n := c.calls.Load(); n > 0 {
		t.Errorf("%s: somebody has connected to port %d", id, c.port)
	}
}
