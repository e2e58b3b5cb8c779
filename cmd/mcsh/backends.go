package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/local"
)

// A backend is one row of the table of where commands run.
type backend struct {
	name    string
	summary string // for the help of --sandbox

	// driver makes the driver. The error says why there is none on this machine.
	driver func(p *program) (sandbox.Driver, error)
}

// backends is the table. --sandbox auto tries the rows in this order.
var backends = []backend{
	{"local", "worker processes on this machine, locked in by the kernel", localDriver},
}

// What --sandbox takes besides the name of a backend.
const (
	backendAuto = "auto"
	backendOff  = "off"
)

// localDriver starts workers that are processes of this machine.
func localDriver(*program) (sandbox.Driver, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the sandbox worker: %w", err)
	}
	return local.New(local.Options{Worker: workerArgv(self)}), nil
}

// addBackends adds the flag that says where commands run.
func (s *settings) addBackends(cmd *cobra.Command) {
	help := []string{backendAuto + " (the first backend whose audit passes)"}
	names := []string{backendAuto}
	for _, b := range backends {
		help = append(help, b.name+" ("+b.summary+")")
		names = append(names, b.name)
	}
	help, names = append(help, backendOff+" (no commands)"), append(names, backendOff)
	cmd.Flags().StringVar(&s.backend, "sandbox", backendAuto, "where commands run: "+strings.Join(help, ", "))
	_ = cmd.RegisterFlagCompletionFunc("sandbox", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// An opener starts what commands run in. The error says why no command runs there.
type opener func(ctx context.Context, p *program, warm int) (*sandbox.Pool, error)

var errSandboxOff = errors.New("the sandbox is off (--sandbox " + backendOff + ")")

// findBackend returns what --sandbox names, out of the table.
func findBackend(name string, table []backend) (opener, error) {
	names := []string{backendAuto}
	switch name {
	case backendAuto:
		return firstOf(table), nil
	case backendOff:
		return func(context.Context, *program, int) (*sandbox.Pool, error) { return nil, errSandboxOff }, nil
	}
	for _, b := range table {
		if b.name == name {
			return b.open, nil
		}
		names = append(names, b.name)
	}
	return nil, usageError("use one of: "+strings.Join(append(names, backendOff), ", "), "--sandbox %q: there is no such backend", name)
}

// firstOf opens the first backend whose audit passes. The error tells of each why it did not.
func firstOf(table []backend) opener {
	return func(ctx context.Context, p *program, warm int) (*sandbox.Pool, error) {
		err := errors.New("there is no backend")
		for i, b := range table {
			pool, why := b.open(ctx, p, warm)
			if why == nil {
				return pool, nil
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if i == 0 {
				err = why
			} else {
				err = fmt.Errorf("%w; %w", err, why)
			}
		}
		return nil, err
	}
}

// open starts the backend and audits it.
func (b backend) open(ctx context.Context, p *program, warm int) (*sandbox.Pool, error) {
	driver, err := b.driver(p)
	if err != nil {
		return nil, err
	}
	return sandbox.New(ctx, sandbox.Options{Driver: driver, Warm: warm})
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
