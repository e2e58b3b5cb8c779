//go:build !linux

package local

import (
	"context"
	"errors"

	"github.com/mcsh-dev/mcsh/sandbox"
)

// A Driver refuses to start workers: their jail is made of what only Linux has.
type Driver struct{}

// New returns a driver whose Probe says why it does not work.
func New(Options) *Driver { return &Driver{} }

var errLinux = errors.New("the local sandbox needs Linux: run this there, or without commands (--sandbox off)")

// Probe returns an error.
func (*Driver) Probe(context.Context) (sandbox.Report, error) { return sandbox.Report{}, errLinux }

// Open returns an error.
func (*Driver) Open(context.Context) (sandbox.Worker, error) { return nil, errLinux }

// Close does nothing.
func (*Driver) Close() error { return nil }
