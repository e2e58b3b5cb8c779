package docker

import (
	"cmp"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox"
)

// Options set up an [Engine] and a [Driver]. The zero value is the engine at its usual place, and the project's image.
type Options struct {
	// Host is the engine's address as DOCKER_HOST has it ("unix:///run/user/1000/podman/podman.sock",
	// "tcp://10.0.0.1:2376"); the usual socket of the system if empty.
	Host string

	// CertDir holds ca.pem, cert.pem and key.pem for an engine behind TLS, as DOCKER_CERT_PATH does. Empty: no TLS.
	CertDir string

	// Image is what containers are made of; that of [DefaultImage] without a version if empty.
	Image string

	// Make is the command that makes the image, for messages; the one that makes the default image if empty.
	Make string

	// Worker is the worker's argv in the image; [WorkerPath] alone if empty.
	Worker []string

	// Runtime is the engine's runtime, such as "runsc"; the engine's default if empty.
	Runtime string

	// Workspace is the absolute path, for the engine, of the directory whose files commands may read: every container
	// has it, read-only. Empty: they read none.
	Workspace string

	// Isolation says what a container is kept for.
	Isolation Isolation

	// Memory is what a container may take, in bytes: 1 GiB for each run that shares it if zero.
	Memory int64

	// CPUs is how many processors a container may use: 2 if zero, and never more than there are.
	CPUs float64

	// Share is how many runs of one caller may be in a container at the same time: 1 if zero. With more they share its
	// memory, processes and processors.
	Share int

	// Warm is how many containers wait for a caller: 2 if zero, none if negative.
	Warm int

	// Max is how many runs may have a container at a time: 64 if zero.
	Max int

	// Runs is how many runs a container serves before it is replaced: 50 if zero.
	Runs int

	// Life is how long a container is kept for its caller: 10 minutes if zero.
	Life time.Duration

	// AllowUnlimited serves although the engine does not enforce the limits on memory and processes that it was told:
	// rootless engines on control groups of version 1 do not.
	AllowUnlimited bool
}

// Isolation says how long a container lives.
type Isolation string

// The ways to isolate.
const (
	PerCaller Isolation = "caller" // it serves one caller for a while; what the empty one means as well
	PerRun    Isolation = "run"    // it serves one run
)

// repository is the name of the project's own image.
const repository = "mcsh/mcsh"

// WorkerPath is where the worker's binary is in the image.
const WorkerPath = "/usr/local/bin/mcsh-worker"

// DefaultImage names the image that belongs to a version of this program: gateway and worker must be of one release.
// What a tag cannot hold becomes "-"; the version "" or "devel" is the tag "devel".
func DefaultImage(version string) string {
	if version == "" {
		version = "devel"
	}
	tag := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, version)
	tag = strings.TrimLeft(tag, ".-")
	return repository + ":" + tag[:min(len(tag), maxTag)]
}

// maxTag is how long a tag can be.
const maxTag = 128

// defaultMax is how many runs may have a container at a time.
const defaultMax = 64

// withDefaults fills in what is zero.
func (o Options) withDefaults() Options {
	o.Image = cmp.Or(o.Image, DefaultImage(""))
	o.Make = cmp.Or(o.Make, "mcsh sandbox build")
	o.CPUs = cmp.Or(o.CPUs, 2)
	o.Share = cmp.Or(o.Share, 1)
	o.Warm = cmp.Or(o.Warm, 2)
	o.Max = cmp.Or(o.Max, defaultMax)
	o.Runs = cmp.Or(o.Runs, 50)
	o.Life = cmp.Or(o.Life, 10*time.Minute)
	if o.Isolation == PerRun {
		o.Runs, o.Share = 1, 1
	}
	o.Memory = cmp.Or(o.Memory, int64(o.Share)*2*sandbox.Memory)
	if len(o.Worker) == 0 {
		o.Worker = []string{WorkerPath}
	}
	return o
}

// makeHint says how the image comes about.
func (o Options) makeHint() string { return "make it with: " + o.Make }
