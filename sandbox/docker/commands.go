package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/pkg/stdcopy"
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
	c.user, err = c.userFor(ctx)
	return c, err
}

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

// spec describes the container of one command, which ends by itself after the given time, whatever becomes of this process.
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

// explain returns the cause of ctx if that has ended, or else an error of the engine.
func (c *Commands) explain(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fault(doing+" of the image "+c.options.Image, err)
}
