package docker_test

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

// The image of the tests: the programs of this machine, and as worker the probe, which has programs that try to break
// out. It is made by importing a tar, for which no registry is needed.
var probeImage = "mcsh-test/probe:" + strings.ToLower(rand.Text()) // other tests may run at the same time

// api is the engine, nil if none answers; noEngine says why.
var (
	api      *client.Client
	noEngine error
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	parttest.Overlap(4)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var err error
	if api, err = client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation()); err == nil {
		defer api.Close()
		_, noEngine = api.Ping(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if noEngine != nil || os.Getenv(gatewayVariable) != "" { // the gateway of TestGatewayKilled has an image
		return m.Run()
	}
	if err := importImage(ctx, api, probeImage); err != nil {
		fmt.Fprintln(os.Stderr, "making the image of the tests:", err)
		return 1
	}
	defer api.ImageRemove(ctx, probeImage, image.RemoveOptions{})
	return m.Run()
}

// needEngine skips a test where no engine answers.
func needEngine(t testing.TB) {
	t.Helper()
	if noEngine != nil {
		parttest.Missing(t, "needs a container engine: %v", noEngine)
	}
}

// options are those of a driver for the tests.
func options() docker.Options {
	return docker.Options{Host: os.Getenv(client.EnvOverrideHost), Image: probeImage, Worker: []string{docker.WorkerPath, "worker"}}
}

// importImage gives an engine the image of the tests.
func importImage(ctx context.Context, api *client.Client, name string) error {
	dir, err := os.MkdirTemp("", "mcsh-docker-test-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := parttest.Build(dir, "sandbox/sandboxtest/probe"); err != nil {
		return err
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(writeImage(w, filepath.Join(dir, "probe"))) }()
	reply, err := api.ImageImport(ctx, image.ImportSource{Source: r, SourceName: "-"}, name, image.ImportOptions{})
	if err != nil {
		return err
	}
	defer reply.Close()
	text, err := io.ReadAll(reply)
	if err == nil && strings.Contains(string(text), "error") {
		err = errors.New(string(text))
	}
	return err
}

// A rootfs is the tar of an image.
type rootfs struct {
	*tar.Writer
	have map[string]bool
}

func writeImage(w io.Writer, probe string) error {
	r := &rootfs{tar.NewWriter(w), map[string]bool{}}
	for _, dir := range []struct {
		name string
		mode int64
	}{{"usr", 0o755}, {"usr/bin", 0o755}, {"usr/lib", 0o755}, {"usr/lib64", 0o755}, {"usr/local", 0o755}, {"usr/local/bin", 0o755}, {"etc", 0o755}, {"proc", 0o755}, {"sys", 0o755}, {"dev", 0o755}, {"tmp", 0o1777}, {"var", 0o755}, {"var/tmp", 0o1777}} {
		if err := r.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir.name + "/", Mode: dir.mode}); err != nil {
			return err
		}
	}
	for _, name := range []string{"bin", "lib", "lib64"} {
		if err := r.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: "usr/" + name, Mode: 0o777}); err != nil {
			return err
		}
	}
	if err := r.file(probe, strings.TrimPrefix(docker.WorkerPath, "/")); err != nil {
		return err
	}
	names := []string{"dash", "timeout", "cat", "sleep", "factor"} // for TestCommands and TestAdded
	for _, p := range programs.All() {
		if p.Bin != "" {
			names = append(names, p.Bin)
		}
	}
	for _, name := range names {
		if err := r.program("/usr/bin/" + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, dir := range []string{"/usr/lib/locale/C.utf8", "/usr/share/zoneinfo"} {
		if err := r.tree(dir); err != nil {
			return err
		}
	}
	return r.Close()
}

// file adds a file of this machine.
func (r *rootfs) file(path, name string) error {
	if r.have[name] {
		return nil
	}
	r.have[name] = true
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if err := r.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: st.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(r, f)
	return err
}

// program adds a program with its loader and its libraries.
func (r *rootfs) program(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := r.file(path, "usr/bin/"+filepath.Base(path)); err != nil {
		return err
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name, err := io.ReadAll(p.Open())
			if err != nil {
				return err
			}
			loader := strings.TrimRight(string(name), "\x00")
			if err := r.file(loader, "usr"+loader); err != nil {
				return err
			}
		}
	}
	return r.libraries(f)
}

func (r *rootfs) libraries(f *elf.File) error {
	names, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, name := range names {
		found, _ := filepath.Glob("/usr/lib/*-linux-gnu/" + name)
		if len(found) == 0 {
			return fmt.Errorf("the library %s is not here", name)
		}
		to := strings.TrimPrefix(found[0], "/")
		if r.have[to] {
			continue
		}
		if err := r.file(found[0], to); err != nil {
			return err
		}
		lib, err := elf.Open(found[0])
		if err != nil {
			return err
		}
		err = r.libraries(lib)
		lib.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// tree adds the files of a directory.
func (r *rootfs) tree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
			return err
		}
		return r.file(path, strings.TrimPrefix(path, "/"))
	})
}

// ours are the containers of this process's drivers.
func ours(t testing.TB) []container.Summary {
	t.Helper()
	list, err := api.ContainerList(context.WithoutCancel(t.Context()), container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", "mcsh.role=worker"))})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list, func(c container.Summary) bool { return c.Image != probeImage })
}

// volumes are the names of the volumes of containers.
func volumes(list []container.Summary) []string {
	var names []string
	for _, c := range list {
		for _, m := range c.Mounts {
			names = append(names, m.Name)
		}
	}
	return names
}

// nothingLeft checks that no container is left, and none of the volumes that they had.
func nothingLeft(t testing.TB, had []string) {
	t.Helper()
	for _, c := range ours(t) {
		t.Errorf("a container is left: %s, %s", c.ID, c.Status)
	}
	for _, name := range had {
		if _, err := api.VolumeInspect(context.WithoutCancel(t.Context()), name); err == nil {
			t.Errorf("a volume is left: %s", name)
		}
	}
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
