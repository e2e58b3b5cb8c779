//go:build linux

package docker_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/client"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
	"github.com/mcsh-dev/mcsh/stages"
)

// A secondEngine is an engine of a test's own, which it may end.
type secondEngine struct {
	dir string
	cmd *exec.Cmd
}

// newEngine starts an engine beside the machine's, with the image of the tests.
func newEngine(t *testing.T) *secondEngine {
	t.Helper()
	needEngine(t)
	if _, err := exec.LookPath("dockerd"); err != nil || os.Getuid() != 0 {
		parttest.Missing(t, "only root can start a second engine, and dockerd has to be installed: %v", err)
	}
	dir, err := os.MkdirTemp("/var/tmp", "mcsh-engine-") // the path of a socket is short, and the data no tmpfs
	if err != nil {
		t.Fatal(err)
	}
	e := &secondEngine{dir: dir}
	t.Cleanup(func() {
		e.stop(t)
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("the engine's files: %v", err)
		}
	})
	e.start(t)
	api, err := client.NewClientWithOpts(client.WithHost(e.host()), client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	if err := importImage(t.Context(), api, probeImage); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *secondEngine) host() string { return "unix://" + filepath.Join(e.dir, "engine.sock") }

// start returns when the engine answers.
func (e *secondEngine) start(t *testing.T) {
	t.Helper()
	in := func(name string) string { return filepath.Join(e.dir, name) }
	log, err := os.OpenFile(in("log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	e.cmd = exec.Command("dockerd", "--host", e.host(), "--data-root", in("data"), "--exec-root", in("exec"),
		"--pidfile", in("pid"), "--bridge", "none", "--iptables=false", "--ip-forward=false", "--ip-masq=false")
	e.cmd.Stdout, e.cmd.Stderr = log, log
	e.cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid: true, Pdeathsig: syscall.SIGTERM,
		Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, // what it does to networks and mounts is its own
	}
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if said, err := os.ReadFile(in("log")); err == nil && t.Failed() {
			t.Logf("the engine said: %s", said[max(0, len(said)-4000):])
		}
	})
	eventually(t, "the second engine answers", func() bool {
		c, err := docker.Connect(t.Context(), docker.Options{Host: e.host()})
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// stop ends the engine, and with it its containers.
func (e *secondEngine) stop(t *testing.T) {
	t.Helper()
	if e.cmd.ProcessState != nil {
		return
	}
	if err := e.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	ended := time.AfterFunc(time.Minute, func() { _ = e.cmd.Process.Kill() })
	defer ended.Stop()
	_ = e.cmd.Wait() // it has got its signal
}

// TestEngineRestarts: when the engine goes away, runs under way fail with a clear error, and new ones with another
// that says there is none; when it is back, the same pool works.
func TestEngineRestarts(t *testing.T) {
	t.Parallel() // it has an engine of its own
	e := newEngine(t)
	o := options()
	o.Host = e.host()
	p, err := sandbox.New(t.Context(), sandbox.Options{Driver: docker.New(o), Lasting: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()      // before the engine is ended for good
	works(t, p, "guest") // its worker waits for it
	s := open(t, p, "caller")
	run := start(t, s, "sed", "-u", "s/a/b/")
	e.stop(t)
	run.lost(t)
	s.Close()
	waiting(t, p, 0)
	if _, err := p.Open(t.Context(), "another"); err == nil {
		t.Error("a run begins without an engine")
	} else {
		t.Logf("meanwhile: %v", err)
	}
	e.start(t)
	eventually(t, "the pool works again", func() bool {
		s, err := p.Open(t.Context(), "caller")
		if err != nil {
			return false
		}
		defer s.Close()
		f, err := s.Prepare([]stages.Command{{Name: "tr", Args: []string{"a-z", "A-Z"}, Timeout: time.Minute}}, nil)
		if err != nil {
			return false
		}
		var out bytes.Buffer
		return f(t.Context(), strings.NewReader("abc"), &out) == nil && out.String() == "ABC"
	})
}
