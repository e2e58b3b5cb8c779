package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	roleCommand = "command" // the label of a container with one command

	// lateKill is how long a command lives on whose gateway was killed, after its own time.
	lateKill = 10 * time.Second
)

// Commands runs any programs of the image, each in a container of its own that has one directory of this machine and no network.
// The limits are those of workers; the filter of system calls is the engine's. Everything ends with the first process.
type Commands struct {
	options  Options
	engine   *Engine
	instance string
	dir      string // absolute
	user     string
	cpus     int
	there    sync.Map // programs that the image has
}

// OpenCommands connects to the engine. Programs can read and write dir, which is their working directory, as the user of this
// process or, for root, as the owner of dir.
func OpenCommands(ctx context.Context, o Options, dir string) (*Commands, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	d := New(o)
	engine, err := d.ready(ctx)
	if err != nil {
		return nil, err
	}
	c := &Commands{options: d.options, engine: engine, instance: rand.Text(), dir: dir, cpus: d.cpus}
	c.options.Workspace = ""
	if c.user, err = c.userFor(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close ends idle connections with the engine. A later Run makes them anew.
func (c *Commands) Close() error { return c.engine.Close() }

// userFor returns the user and group of the processes. To a rootless engine this process's user is root.
func (c *Commands) userFor(ctx context.Context) (string, error) {
	status, err := c.engine.Status(ctx, c.options.Image)
	if err != nil || status.Rootless {
		return "0:0", err
	}
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		if uid, gid, err = owner(c.dir); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d:%d", uid, gid), nil
}

// owner returns the user and group of a file.
func owner(path string) (uid, gid int, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, fmt.Errorf("%s: this system does not say who owns it", path)
	}
	return int(stat.Uid), int(stat.Gid), nil
}

// spec describes the container of one command, which ends by itself after the given time, also without this process.
func (c *Commands) spec(argv, env []string, most time.Duration) (*container.Config, *container.HostConfig) {
	config, host := c.options.spec(c.instance, "", c.cpus)
	config.Entrypoint = []string{"timeout", "-s", "KILL", strconv.Itoa(int((most+lateKill)/time.Second) + 1)}
	config.Cmd = argv
	config.Env = append(slices.Clone(env), "HOME="+scratchDir, "TMPDIR="+scratchDir) // the last of a name counts
	config.User, config.WorkingDir = c.user, workDir
	config.AttachStdin, config.OpenStdin, config.StdinOnce = false, false, false
	config.Labels[labelRole] = roleCommand
	host.Mounts = append(host.Mounts, mount.Mount{
		Type: mount.TypeBind, Source: c.dir, Target: workDir,
		BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate},
	})
	return config, host
}

// Run runs argv in a container to its end, and returns its exit code, with 128 and its number for a signal. When ctx ends, which
// must have a deadline, the container is removed, and the error is the cause. A nil stderr is dropped.
func (c *Commands) Run(ctx context.Context, argv, env []string, stdout, stderr io.Writer) (int, error) {
	end, ok := ctx.Deadline()
	if !ok {
		return -1, errors.New("running a command in a container: it has no deadline")
	}
	if stderr == nil {
		stderr = io.Discard
	}
	config, host := c.spec(argv, env, time.Until(end))
	made, err := c.engine.create(ctx, config, host)
	if err != nil {
		return -1, c.explain(ctx, "creating a container", err)
	}
	defer func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
		defer cancel()
		c.engine.remove(late, made.ID)
	}()
	if c.lacks(ctx, made.ID, argv[0]) {
		return -1, fmt.Errorf("the image %s has no program %q: use another program or another image", c.options.Image, texts.Cut(argv[0], 60))
	}
	ended, failed := c.engine.api.ContainerWait(ctx, made.ID, container.WaitConditionNextExit)
	conn, err := c.engine.attach(ctx, made.ID)
	if err != nil {
		return -1, c.explain(ctx, "attaching to a container", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, conn.Close)()
	if err := c.engine.api.ContainerStart(ctx, made.ID, container.StartOptions{}); err != nil {
		return -1, c.explain(ctx, "starting a container", err)
	}
	if _, err := stdcopy.StdCopy(stdout, stderr, conn.Reader); err != nil {
		return -1, c.explain(ctx, "reading from a container", err)
	}
	select {
	case status := <-ended:
		return int(status.StatusCode), nil
	case err := <-failed:
		return -1, c.explain(ctx, "waiting for a container", err)
	}
}

// enginePath is the PATH in a container whose image has none.
const enginePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// lacks reports whether a new container has no such program, which would only be an exit code. It asks once for each program.
func (c *Commands) lacks(ctx context.Context, id, program string) bool {
	if _, known := c.there.Load(program); known {
		return false
	}
	files := []string{program}
	switch {
	case path.IsAbs(program):
	case strings.ContainsRune(program, '/'):
		return false // it depends on the directory
	default:
		info, err := c.engine.api.ContainerInspect(ctx, id)
		if err != nil {
			return false
		}
		list := enginePath
		for _, v := range info.Config.Env {
			if own, ok := strings.CutPrefix(v, "PATH="); ok {
				list = own
			}
		}
		files = nil
		for dir := range strings.SplitSeq(list, ":") {
			files = append(files, path.Join("/", dir, program))
		}
	}
	for _, file := range files {
		_, err := c.engine.api.ContainerStatPath(ctx, id, file)
		if err == nil {
			c.there.Store(program, true)
		}
		if !cerrdefs.IsNotFound(err) { // with any other error, nobody knows
			return false
		}
	}
	return true
}

// explain returns the cause of ctx if that has ended, or else an error of the engine.
func (c *Commands) explain(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fault(doing+" of the image "+c.options.Image, err)
}
