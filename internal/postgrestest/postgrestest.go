//go:build linux

// Package postgrestest runs PostgreSQL for tests, which may kill it and start it again.
package postgrestest

import (
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/internal/porttest"
)

// patience is how long a start may take.
const patience = 2 * time.Minute

// A Server is a PostgreSQL for as long as the test.
type Server struct {
	testing.TB
	programs, dir, host, port string
	owner                     *syscall.Credential // of the data; nil is this user
	running                   *exec.Cmd
	ended                     chan struct{} // closed when it has
}

// New starts a server without data.
func New(t testing.TB) *Server {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		parttest.Missing(t, "PostgreSQL is not installed; .ci/run parts installs it")
	}
	dir, err := os.MkdirTemp("", "mcsh-postgres-") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &Server{TB: t, programs: filepath.Dir(slices.Max(found)), dir: dir, owner: ownerOf(t, dir)}
	s.host, s.port, _ = net.SplitHostPort(porttest.Free(t))
	if out, err := s.command("initdb", "-D", s.in("data"), "-A", "trust", "-U", "test", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if s.Kill(); t.Failed() {
			said, err := os.ReadFile(s.in("log"))
			t.Logf("PostgreSQL said: %s %v", said, err)
		}
	})
	s.Start()
	return s
}

// URL is the address of a database, which need not exist. Its user may make it.
func (s *Server) URL(database string) string {
	return "postgresql://test@" + net.JoinHostPort(s.host, s.port) + "/" + database
}

// Start starts the server again after Kill, and returns when it answers.
func (s *Server) Start() {
	s.Helper()
	for end := time.Now().Add(patience); !s.try(); time.Sleep(50 * time.Millisecond) { // processes of a killed one end a moment later
		if time.Now().After(end) {
			s.Fatal("PostgreSQL does not start")
		}
	}
}

// try starts the server, and reports whether it answers.
func (s *Server) try() bool {
	s.Helper()
	log, err := os.OpenFile(s.in("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.Fatal(err)
	}
	defer log.Close()
	c := s.command("postgres", "-D", s.in("data"), "-h", s.host, "-p", s.port, "-k", s.dir, "-F")
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		s.Fatal(err)
	}
	ended := make(chan struct{})
	s.running, s.ended = c, ended
	go func() {
		defer close(ended)
		_ = c.Wait() // it is killed, or its log says why it has ended
	}()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		select {
		case <-ended:
			return false
		default:
		}
		if s.command("pg_isready", "-q", "-h", s.host, "-p", s.port, "-U", "test").Run() == nil {
			return true
		}
	}
	return false
}

// Kill ends the server at once.
func (s *Server) Kill() {
	if s.running != nil {
		_ = s.running.Process.Kill() // it may have ended
		<-s.ended
	}
}

func (s *Server) in(name string) string { return filepath.Join(s.dir, name) }

func (s *Server) command(program string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.programs, program), args...)
	c.Dir = s.dir
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: s.owner}
	return c
}

// ownerOf returns the user that the server runs as, which is not root, and makes it the owner of dir.
func ownerOf(t testing.TB, dir string) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		parttest.Missing(t, "PostgreSQL does not run as root, and there is no user postgres: %v", err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
