package enginetest

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/engine/temporal"
)

// TestDial: what an operator reads where there is no connection.
func TestDial(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	secure := httptest.NewUnstartedServer(nil)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(secure.Close) // after the parallel tests
	for name, c := range map[string]struct {
		options temporal.Options
		want    []string
	}{
		"nothing listens": {temporal.Options{Address: nobody}, []string{nobody, "connection refused", "mcsh-temporal-dev"}},
		"no namespace":    {temporal.Options{Address: shared.address, Namespace: "missing"}, []string{shared.address, `no namespace "missing"`, "create it"}},
		"TLS to a server without": {
			temporal.Options{Address: shared.address, TLS: &tls.Config{MinVersion: tls.VersionTLS12}},
			[]string{shared.address, "handshake", "check that the server speaks TLS"},
		},
		"a key to a server without TLS": {
			temporal.Options{Address: shared.address, APIKey: "hunter2"},
			[]string{shared.address, "handshake", "check that the server speaks TLS"},
		},
		"no TLS to a server with": {temporal.Options{Address: secure.Listener.Addr().String()}, []string{"the server may want TLS"}},
		"unknown certificate": {
			temporal.Options{Address: secure.Listener.Addr().String(), TLS: &tls.Config{MinVersion: tls.VersionTLS12}},
			[]string{"certificate", "check that the server speaks TLS"},
		},
		"no address": {temporal.Options{Address: "a b"}, []string{"a b", "correct the address"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := temporal.Dial(context.Background(), c.options)
			if err == nil {
				e.Close()
				t.Fatal("connected")
			}
			t.Log(err)
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want it to have %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error has the key: %v", err)
			}
		})
	}
}

// TestServerFile: a file holds what a server knows, for one server at a time.
func TestServerFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "temporal.db")
	first, err := serve("--listen", "127.0.0.1:0", "--db", file, "--namespace", "ours")
	if err != nil {
		t.Fatal(err)
	}
	name := start(t, dial(t, temporal.Options{Address: first.address, Namespace: "ours"}), time.Hour)
	if _, err := serve("--listen", "127.0.0.1:0", "--db", file); err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("a second server on the file: %v", err)
	}
	if err := first.end(syscall.SIGTERM); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	second, err := serve("--listen", "127.0.0.1:0", "--db", file, "--namespace", "ours")
	if err != nil {
		t.Fatal(err)
	}
	p, err := dial(t, temporal.Options{Address: second.address, Namespace: "ours"}).Progress(t.Context(), name)
	if err != nil || p.State != "waiting" {
		t.Errorf("got %+v, %v", p, err)
	}
	if err := second.end(syscall.SIGTERM); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// TestServerRefuses: no server starts with a wrong flag, and the error names it.
func TestServerRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--listen", "7233"}, "no address to listen on"},
		{[]string{"--listen", "example.com:7233"}, "give IP:PORT"},
		{[]string{"--listen", shared.address}, "address already in use"},
		{[]string{"--db", filepath.Join(t.TempDir(), "missing", "f")}, "no such file"},
		{[]string{"--db", "postgresql://test:hunter2@127.0.0.1:1/temporal"}, "connection refused"},
		{[]string{"--db", "postgresql://test:hunter2@127.0.0.1:1/"}, "write postgresql://USER@HOST:PORT/NAME"},
		{[]string{"--db", "postgresql://test:hunter2@127.0.0.1:x/temporal"}, "write postgresql://USER@HOST:PORT/NAME"},
		{[]string{"--db", "postgresql://test:hunter2@127.0.0.1:1/temporal?sslmode=verify-full;a=b"}, "write postgresql://USER@HOST:PORT/NAME"},
		{[]string{"extra"}, `unknown argument "extra"`},
	} {
		args := c.args
		if args[0] != "--listen" {
			args = append([]string{"--listen", "127.0.0.1:0"}, args...)
		}
		p, err := serve(args...)
		if err == nil {
			t.Errorf("%q: it serves: %v", c.args, p.end(syscall.SIGKILL))
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.args, err, c.want)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error has the password: %v", c.args, err)
		}
	}
}
