package docker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
	"github.com/mcsh-dev/mcsh/stages"
)

// gatewayVariable makes this test binary a gateway that runs a command until it is killed, with the named image.
const gatewayVariable = "MCSH_TEST_GATEWAY_IMAGE"

// TestGateway is the gateway of TestGatewayKilled.
func TestGateway(t *testing.T) {
	name := os.Getenv(gatewayVariable)
	if name == "" {
		t.Skip("it is a part of TestGatewayKilled")
	}
	o := options()
	o.Image = name
	p, err := sandbox.New(t.Context(), sandbox.Options{Driver: docker.New(o), Warm: -1}) // what was made and not started is left to the sweep of the next gateway
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Prepare([]stages.Command{{Name: "sed", Args: []string{"-u", "p"}, Timeout: time.Minute}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	go io.WriteString(w, "running\n")
	t.Error(f(t.Context(), r, os.Stdout)) // it ends with the process only
}

// TestGatewayKilled is S01: nothing of a gateway that was killed stays on the engine.
func TestGatewayKilled(t *testing.T) {
	needEngine(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	gateway := exec.Command(self, "-test.run=^TestGateway$")
	gateway.Env = append(os.Environ(), gatewayVariable+"="+probeImage)
	out, err := gateway.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := gateway.Start(); err != nil {
		t.Fatal(err)
	}
	defer gateway.Wait()
	defer gateway.Process.Kill()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "running\n" {
		t.Fatalf("the gateway said %q, %v", line, err)
	}
	had := volumes(ours(t))
	if len(had) == 0 {
		t.Fatal("the gateway has no container")
	}
	if err := gateway.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the containers are gone", func() bool { return len(ours(t)) == 0 })
	eventually(t, "the volumes are gone", func() bool {
		for _, name := range had {
			if _, err := api.VolumeInspect(t.Context(), name); err == nil {
				return false
			}
		}
		return true
	})
}

// TestImageMissing is S14: nothing is built or pulled unasked, and the error says what to do.
func TestImageMissing(t *testing.T) {
	needEngine(t)
	o := options()
	o.Image = "mcsh-test/none:at-all"
	_, err := sandbox.New(t.Context(), sandbox.Options{Driver: docker.New(o)})
	if !errors.Is(err, docker.ErrNoImage) || !strings.Contains(err.Error(), "mcsh sandbox build") {
		t.Errorf("got %v, want that the image is missing and how it is made", err)
	}
}

// TestImageOfNoUse: what is wrong with an image, such as that it is of another release, comes with the command that makes
// the one that is named.
func TestImageOfNoUse(t *testing.T) {
	needEngine(t)
	for name, test := range map[string]struct {
		image  string
		worker []string
		want   string
	}{
		"missing":          {"mcsh-test/none:at-all", []string{docker.WorkerPath}, "the sandbox image is missing"},
		"no worker":        {probeImage, []string{"/nothing/there"}, "the image may hold no worker"},
		"no words of ours": {probeImage, []string{docker.WorkerPath, "no", "such", "worker"}, "the image may be of another release"},
	} {
		o := options()
		o.Image, o.Worker, o.Make = test.image, test.worker, "mcsh sandbox build --sandbox-image this-one"
		_, err := sandbox.New(t.Context(), sandbox.Options{Driver: docker.New(o)})
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasSuffix(err.Error(), "make it with: "+o.Make+")") {
			t.Errorf("%s: got %v, want %q and how the image is made", name, err, test.want)
		}
	}
}

// TestImageVanishes: an image that is removed while a gateway runs is an error of the next run, not of the gateway.
func TestImageVanishes(t *testing.T) {
	needEngine(t)
	const name = "mcsh-test/probe:vanishes"
	if err := api.ImageTag(t.Context(), probeImage, name); err != nil {
		t.Fatal(err)
	}
	o := options()
	o.Image = name
	p, err := sandbox.New(t.Context(), sandbox.Options{Driver: docker.New(o), Warm: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	works(t, p, "a") // the container of the probe
	if _, err := api.ImageRemove(t.Context(), name, image.RemoveOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = p.Open(t.Context(), "a")
	if !errors.Is(err, docker.ErrNoImage) {
		t.Errorf("got %v, want that the image is missing", err)
	}
	if err := api.ImageTag(t.Context(), probeImage, name); err != nil {
		t.Fatal(err)
	}
	works(t, p, "a")
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := api.ImageRemove(t.Context(), name, image.RemoveOptions{}); err != nil {
		t.Error(err)
	}
}

// TestNoWorkerInImage: an image without a worker, or with something else in its place, is an error that says so.
func TestNoWorkerInImage(t *testing.T) {
	needEngine(t)
	for name, argv := range map[string][]string{
		"no such file":   {"/usr/local/bin/nothing"},
		"something else": {"/usr/bin/sort"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.Worker = argv
			_, err := sandbox.New(t.Context(), sandbox.Options{Driver: docker.New(o)})
			if err == nil || !strings.Contains(err.Error(), "mcsh sandbox build") {
				t.Errorf("got %v, want how the image is made", err)
			}
			eventually(t, "nothing is left", func() bool { return len(ours(t)) == 0 })
		})
	}
}

// TestPodman is S16: the other engine, through its socket.
func TestPodman(t *testing.T) {
	t.Parallel() // it has an engine of its own
	program, err := exec.LookPath("podman")
	if err != nil || os.Getuid() != 0 {
		parttest.Missing(t, "it needs root and podman")
	}
	dir, err := os.MkdirTemp("", "mcsh-podman-")
	if err != nil {
		t.Fatal(err)
	}
	socket := "unix://" + filepath.Join(dir, "podman.sock")
	service := exec.Command(program, "--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "run"),
		"--cgroup-manager", "cgroupfs", "--runtime", "runc", "--events-backend", "file", "system", "service", "--time", "0", socket)
	service.Stderr = os.Stderr
	service.Env = append(os.Environ(), "TMPDIR="+dir) // it leaves what it was sent
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = service.Process.Signal(os.Interrupt)
		_ = service.Wait()
		_ = exec.Command(program, "--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "run"), "system", "reset", "--force").Run() // what it leaves shows below
		// Podman cleans up after a container in a process of its own, which writes on for a while.
		eventually(t, "Podman's files can be removed", func() bool { return os.RemoveAll(dir) == nil })
	})
	api, err := client.NewClientWithOpts(client.WithHost(socket), client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	eventually(t, "podman answers", func() bool { _, err := api.Ping(t.Context()); return err == nil })
	const name = "localhost/mcsh-test/probe:latest"
	if err := importImage(t.Context(), api, name); err != nil {
		t.Fatal(err)
	}
	o := options()
	o.Host, o.Image = socket, name
	p, err := sandbox.New(t.Context(), sandbox.Options{Driver: docker.New(o)})
	if err != nil {
		t.Fatal(err)
	}
	report := p.Report()
	if report.Memory == 0 || report.Processes == 0 || !strings.Contains(fmt.Sprint(report.Gaps), "sockets of virtual machines") {
		t.Errorf("got %+v, want limits, and the gap that Podman leaves", report)
	}
	works(t, p, "a")
	works(t, p, "b")
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	left, err := api.ContainerList(context.WithoutCancel(t.Context()), container.ListOptions{All: true})
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
