package sandbox

import (
	"context"
	"io"
)

// A Driver starts the workers of one backend. Its methods may be called concurrently.
type Driver interface {
	// Probe starts a worker, has it audit itself and its programs, and ends it. It is called once, before Open.
	// [Audit] does the work once there is a connection.
	Probe(ctx context.Context) (Report, error)

	// Open starts a worker and returns the two streams that it speaks the protocol on. ctx bounds only the start.
	// Closing them ends the worker with all of its processes and files, and makes a Read or Write that is under way
	// return; it may be called more than once, and concurrently with Read and Write.
	Open(ctx context.Context) (io.ReadWriteCloser, error)

	// Close ends whatever is left of all workers.
	Close() error
}

// A Report says what a backend is able to do and how safely.
type Report struct {
	Backend    string // "local", "docker"
	Profile    string // "dynamic": programs under Landlock; "pure": only jq and sleep, which need no file
	Landlock   int    // ABI version of the kernel, 0 without
	Seccomp    bool
	NoNewPrivs bool
	UID        int // of the worker
	Programs   []Availability
}

// An Availability says whether one program of the table can be used.
type Availability struct {
	Name    string
	Version string // the first line of its version text; empty for what is part of mcsh
	Package string // the Debian package that brings it
	Refusal string // why it cannot be used; empty: it can
}
