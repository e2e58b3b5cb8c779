package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
	"github.com/mcsh-dev/mcsh/sandbox/local"
)

// A backend is one row of the table of where commands run.
type backend struct {
	name    string
	summary string // for the help of --sandbox

	// driver makes the driver. The error says why there is none on this machine.
	driver func(ctx context.Context, p *program, s sandboxSettings) (sandbox.Driver, error)

	// absent reports whether an error says only that the machine has nothing of the kind, which is no news to anybody;
	// nil: none does.
	absent func(err error, s sandboxSettings) bool
}

// backends is the table. --sandbox auto tries the rows in this order.
var backends = []backend{
	{
		name: "docker", summary: "containers without network, one for each caller",
		driver: dockerDriver, absent: noEngine,
	},
	{name: "local", summary: "worker processes on this machine, locked in by the kernel", driver: localDriver},
}

// What --sandbox takes besides the name of a backend.
const (
	backendAuto = "auto"
	backendOff  = "off"
)

// dockerDriver starts workers in containers.
func dockerDriver(_ context.Context, _ *program, s sandboxSettings) (sandbox.Driver, error) {
	o := s.engine()
	o.Isolation, o.Warm = docker.Isolation(s.isolation), s.optionWarm()
	o.Max, o.Workspace = max(s.max, 0), s.workspace
	return docker.New(o), nil
}

// noEngine reports whether there is no container engine at all, and nobody has said that there is one.
func noEngine(err error, s sandboxSettings) bool {
	return s.host == "" && errors.Is(err, docker.ErrNoEngine)
}

// localDriver starts workers that are processes of this machine.
func localDriver(_ context.Context, p *program, s sandboxSettings) (sandbox.Driver, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the sandbox worker: %w", err)
	}
	return local.New(local.Options{Worker: workerArgv(self), Scratch: p.scratchDir(), Workspace: s.workspace}), nil
}

// An opening is what commands run in, and what came before it was found.
type opening struct {
	pool   *sandbox.Pool
	passed []failedBackend
}

// A failedBackend is a backend that could not be used.
type failedBackend struct {
	backend backend
	err     error
	news    bool // people want to hear of it where another backend works
}

// failed makes a failedBackend of the error of open.
func (b backend) failed(err error, s sandboxSettings) failedBackend {
	return failedBackend{b, err, b.absent == nil || !b.absent(err, s)}
}

// report is that of the pool. Its notes say why a backend that comes first is not used.
func (o *opening) report() sandbox.Report {
	r := o.pool.Report()
	for _, f := range o.passed {
		if f.news {
			r.Notes = append(r.Notes, fmt.Sprintf("the %s backend is not used: %v", f.backend.name, f.err))
		}
	}
	return r
}

// An opener starts what commands run in. The error says why no command runs there.
type opener func(ctx context.Context, p *program, s sandboxSettings, warm int) (*opening, error)

var errSandboxOff = errors.New("the sandbox is off (--sandbox " + backendOff + ")")

// findBackend returns what --sandbox names, out of the table.
func findBackend(name string, table []backend) (opener, error) {
	names := []string{backendAuto}
	switch name {
	case backendAuto:
		return firstOf(table), nil
	case backendOff:
		return func(context.Context, *program, sandboxSettings, int) (*opening, error) { return nil, errSandboxOff }, nil
	}
	for _, b := range table {
		if b.name == name {
			return firstOf([]backend{b}), nil
		}
		names = append(names, b.name)
	}
	return nil, usageError("use one of: "+strings.Join(append(names, backendOff), ", "), "--sandbox %q: there is no such backend", name)
}

// firstOf opens the first backend whose audit passes. The error tells of each why it did not.
func firstOf(table []backend) opener {
	return func(ctx context.Context, p *program, s sandboxSettings, warm int) (*opening, error) {
		var found opening
		var errs []string
		for _, b := range table {
			pool, err := b.open(ctx, p, s, warm)
			if err == nil {
				found.pool = pool
				return &found, nil
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			found.passed = append(found.passed, b.failed(err, s))
			errs = append(errs, err.Error())
		}
		return nil, &noBackend{strings.Join(errs, "; "), found.passed}
	}
}

// noBackend is the error where no backend can be used.
type noBackend struct {
	text   string
	passed []failedBackend
}

func (e *noBackend) Error() string { return e.text }

func (e *noBackend) Unwrap() []error {
	var errs []error
	for _, f := range e.passed {
		errs = append(errs, f.err)
	}
	return errs
}

// open starts the backend and audits it. A backend that lacks what the operator requires is refused.
func (b backend) open(ctx context.Context, p *program, s sandboxSettings, warm int) (*sandbox.Pool, error) {
	if warm < 0 {
		s.warm = 0
	}
	driver, err := b.driver(ctx, p, s)
	if err != nil {
		return nil, err
	}
	pool, err := sandbox.New(ctx, sandbox.Options{
		Driver: driver, Warm: s.optionWarm(), Max: max(s.max, 0), Lasting: s.isolation == isolations[0],
	})
	if err != nil {
		return nil, err
	}
	if lacks := pool.Report().Lacks(s.require); len(lacks) > 0 {
		err := fmt.Errorf("the %s backend lacks what --sandbox-require wants: %s", b.name, strings.Join(lacks, ", "))
		return nil, errors.Join(err, pool.Close())
	}
	return pool, nil
}

// Names of the sandbox worker: a binary of its own starts five times as fast.
const (
	workerBinary  = "mcsh-worker"
	workerCommand = "worker"
)

// workerArgv is the worker's binary beside ours, or ourselves.
func workerArgv(self string) []string {
	own := filepath.Join(filepath.Dir(self), workerBinary)
	if info, err := os.Stat(own); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
		return []string{own}
	}
	return []string{self, workerCommand}
}
