package docker

import (
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-units"

	"github.com/mcsh-dev/mcsh/sandbox"
)

// Facts of a container.
const (
	roleWorker  = "worker" // its label
	nobody      = "65534:65534"
	nobodyID    = 65534
	workDir     = "/workspace" // where a container has the workspace
	scratchDir  = "/var/tmp"   // Debian's is open to everybody, and so is a volume that is made over it
	maxPids     = 512
	maxCPUs     = 2 // that a container may use, and never more than there are
	maxFiles    = 1024
	oomScore    = 500    // of a container's first process: the kernel takes it before other processes, and its commands before it
	roleHost    = "host" // of the worker's binary
	stopSeconds = 1
)

// spec describes a container: it has nothing but what commands need. They keep files in a volume without a name, which is
// removed with the container; the root cannot be written to and there is no tmpfs, which would take memory.
func (o Options) spec(instance, profile string, cpus int) (*container.Config, *container.HostConfig) {
	wait := stopSeconds
	pids := int64(maxPids)
	security := []string{"no-new-privileges:true"}
	limits := []*units.Ulimit{
		{Name: "core"},
		{Name: "nofile", Soft: maxFiles, Hard: maxFiles},
		{Name: "fsize", Soft: sandbox.Disk, Hard: sandbox.Disk},
	}
	var health *container.HealthConfig
	if profile != "" {
		security = append(security, "seccomp="+profile)
		health = &container.HealthConfig{Test: []string{"NONE"}} // Podman makes a timer of systemd also of none
	} else {
		// Podman asks for more by itself than a machine may allow. The limit is one for all containers of the user.
		limits = append(limits, &units.Ulimit{Name: "nproc", Soft: maxPids * maxRuns, Hard: maxPids * maxRuns})
	}
	mounts := []mount.Mount{{Type: mount.TypeVolume, Target: scratchDir}}
	if o.Workspace != "" {
		mounts = append(mounts, mount.Mount{
			Type: mount.TypeBind, Source: o.Workspace, Target: workDir, ReadOnly: true,
			BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate},
		})
	}
	worker := &container.Config{
		Image:      o.Image,
		Entrypoint: o.Worker[:1],
		Cmd:        o.hostArgs(),
		User:       nobody, WorkingDir: "/",
		AttachStdin: true, AttachStdout: true, AttachStderr: true, OpenStdin: true, StdinOnce: true,
		NetworkDisabled: true,
		Healthcheck:     health,
		StopTimeout:     &wait,
		Labels:          map[string]string{labelInstance: instance, labelRole: roleWorker},
	}
	host := &container.HostConfig{
		NetworkMode: "none", IpcMode: "none", CgroupnsMode: "private",
		ReadonlyRootfs: true, AutoRemove: true,
		CapDrop: []string{"ALL"}, SecurityOpt: security,
		OomScoreAdj:   oomScore,
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		LogConfig:     container.LogConfig{Type: "none"}, // with a log each byte is written to the disk as well
		Mounts:        mounts,
		Resources: container.Resources{
			Memory: o.Memory, MemorySwap: o.Memory, // the sum with swap: none
			NanoCPUs:  int64(min(maxCPUs, max(cpus, 1))) * 1e9,
			PidsLimit: &pids,
			Ulimits:   limits,
		},
	}
	return worker, host
}

// hostArgs are the arguments of the worker's binary, without empty ones at the end.
func (o Options) hostArgs() []string {
	workspace := ""
	if o.Workspace != "" {
		workspace = workDir
	}
	args := slices.Concat(o.Worker[1:], []string{roleHost, scratchDir, workspace, o.Added})
	for args[len(args)-1] == "" {
		args = args[:len(args)-1]
	}
	return args
}

// gaps names what a container lacks of its spec, by what a worker in it has seen.
func (o Options) gaps(r sandbox.Report) []string {
	missing := r.Unheld()
	if r.UID != nobodyID {
		missing = append(missing, "its processes run as another user than "+strings.Split(nobody, ":")[0])
	}
	if r.Memory > o.Memory {
		missing = append(missing, "its limit of memory is higher than asked for")
	}
	return missing
}

// The labels by which containers of ours are known.
const (
	labelInstance = "mcsh.instance" // which gateway's: its containers are nobody's once it is gone
	labelRole     = "mcsh.role"     // what it is for
)
