package docker

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"
)

// The faults of an engine, for errors.Is.
var (
	ErrNoEngine  = errors.New("no container engine answers")
	ErrDenied    = errors.New("the container engine may not be used by this user")
	ErrNotEngine = errors.New("what answers is not a container engine")
	ErrOldEngine = errors.New("the container engine is too old")
	ErrNoImage   = errors.New("the sandbox image is missing")
	ErrNotHeld   = errors.New("the container lacks limits that it was started with")
)

// A Fault is an error of the engine or its surroundings that somebody can act on.
type Fault struct {
	Kind   error  // one of those above, or nil
	Doing  string // what was tried: "connecting to unix:///var/run/docker.sock"
	Hint   string // one concrete next step
	Detail error  // what the engine or the system said, if anything
}

func (f *Fault) Error() string {
	parts := []string{f.Doing}
	if f.Kind != nil {
		parts = append(parts, f.Kind.Error())
	}
	if f.Detail != nil {
		parts = append(parts, strings.TrimSpace(f.Detail.Error()))
	}
	s := strings.Join(parts, ": ")
	if f.Hint != "" {
		s += " (" + f.Hint + ")"
	}
	return s
}

func (f *Fault) Unwrap() []error {
	var all []error
	for _, err := range []error{f.Kind, f.Detail} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// fault explains an error of the client.
func fault(doing string, err error) *Fault {
	f := &Fault{Doing: doing, Detail: err}
	switch {
	case errors.Is(err, fs.ErrPermission), cerrdefs.IsPermissionDenied(err):
		f.Kind = ErrDenied
		f.Hint = "add this user to the group docker, which makes it as powerful as root, or use a rootless engine"
	case errors.Is(err, context.DeadlineExceeded):
		f.Kind = ErrNoEngine
		f.Hint = "what listens there may hang: restart it, or set DOCKER_HOST to the engine that runs"
	case client.IsErrConnectionFailed(err):
		f.Kind = ErrNoEngine
		f.Hint = "start it (systemctl start docker), or set DOCKER_HOST to the engine that runs"
	}
	return f
}
