package docker

import (
	"cmp"
	"strings"

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

	// Workspace is the absolute path, for the engine, of the directory whose files commands may read: every container
	// has it, read-only. Empty: they read none.
	Workspace string

	// Added are the operator's programs, the Text of those of the pool. Their paths are in the image.
	Added string

	// Memory is what a container may take, in bytes: twice what one command may if zero.
	Memory int64
}

// repository is the name of the project's own image.
const repository = "mcsh/mcsh"

// WorkerPath is where the worker's binary is in the image.
const WorkerPath = "/usr/local/bin/mcsh-worker"

// DefaultImage names the image that belongs to a version of this program: gateway and worker must be of one release.
// Characters that a tag cannot hold become "-"; the version "" or "devel" is the tag "devel".
func DefaultImage(version string) string {
	version = cmp.Or(version, "devel")
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

// withDefaults fills in what is zero.
func (o Options) withDefaults() Options {
	o.Image = cmp.Or(o.Image, DefaultImage(""))
	o.Make = cmp.Or(o.Make, "mcsh sandbox build")
	o.Memory = cmp.Or(o.Memory, 2*sandbox.Memory)
	if len(o.Worker) == 0 {
		o.Worker = []string{WorkerPath}
	}
	return o
}

// makeHint says how the image comes about.
func (o Options) makeHint() string { return "make it with: " + o.Make }
