package docker

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"
)

// minAPI is the oldest API that has everything a container of ours is given (private cgroup namespaces).
const minAPI = "1.41"

// greetTimeout bounds the first question to an engine: a process that does not answer then is none.
const greetTimeout = 10 * time.Second

// An Engine is a connection to a container engine.
type Engine struct {
	api  *client.Client
	host string
}

// Connect finds the engine and agrees with it on a version of the API. The error is a [*Fault].
func Connect(ctx context.Context, o Options) (*Engine, error) {
	settings := []client.Opt{client.WithAPIVersionNegotiation()}
	if o.Host != "" {
		settings = append(settings, client.WithHost(o.Host))
	}
	if o.CertDir != "" {
		in := func(name string) string { return filepath.Join(o.CertDir, name) }
		settings = append(settings, client.WithTLSClientConfig(in("ca.pem"), in("cert.pem"), in("key.pem")))
	}
	api, err := client.NewClientWithOpts(settings...)
	if err != nil {
		return nil, &Fault{
			Doing: "connecting to a container engine at " + o.Host, Detail: err,
			Hint: "write an address such as unix:///var/run/docker.sock or tcp://host:2376",
		}
	}
	e := &Engine{api: api, host: api.DaemonHost()}
	if err := e.greet(ctx); err != nil {
		_ = api.Close() // its greeting's error is the one to tell
		return nil, err
	}
	return e, nil
}

// greet checks that an engine answers that is new enough.
func (e *Engine) greet(ctx context.Context) error {
	doing := "connecting to " + e.host
	ctx, cancel := context.WithTimeout(ctx, greetTimeout)
	defer cancel()
	ping, err := e.api.Ping(ctx)
	if err == nil && ping.APIVersion != "" {
		e.api.NegotiateAPIVersionPing(ping)
		if versions.LessThan(ping.APIVersion, minAPI) {
			return &Fault{
				Kind: ErrOldEngine, Doing: doing,
				Hint: "it speaks API " + ping.APIVersion + ", and " + minAPI + " is needed: Docker 20.10 or Podman 4 have it",
			}
		}
		return nil
	}
	if err != nil && (client.IsErrConnectionFailed(err) || cerrdefs.IsPermissionDenied(err) || ctx.Err() != nil) {
		return fault(doing, err)
	}
	return &Fault{Kind: ErrNotEngine, Doing: doing, Detail: err, Hint: "set DOCKER_HOST to the engine's socket"}
}

// Host is the engine's address.
func (e *Engine) Host() string { return e.host }

// APIVersion is what both ends speak.
func (e *Engine) APIVersion() string { return e.api.ClientVersion() }

// ImageID returns the id of an image that the engine has. The error is a [*Fault] of kind [ErrNoImage] if it has none.
func (e *Engine) ImageID(ctx context.Context, image string) (string, error) {
	doing := "looking for the image " + image
	found, err := e.api.ImageInspect(ctx, image)
	if cerrdefs.IsNotFound(err) {
		return "", &Fault{Kind: ErrNoImage, Doing: doing}
	}
	if err != nil {
		return "", fault(doing, err)
	}
	return found.ID, nil
}

// Close ends the connection.
func (e *Engine) Close() error { return e.api.Close() }

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
