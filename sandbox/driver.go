package sandbox

import (
	"bytes"
	"context"
	"io"
	"sync"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// A Driver starts the workers of one backend. Its methods may be called concurrently.
type Driver interface {
	// Probe starts a worker, has it audit itself and its programs, and ends it. It is called once, before Open.
	// [Audit] does the work once there is a connection.
	Probe(ctx context.Context) (Report, error)

	// Open starts a worker. ctx bounds only the start. Two workers share nothing that a command could leave something in.
	Open(ctx context.Context) (Worker, error)

	// Close ends all workers that are left.
	Close() error
}

// A Worker is a started worker: the two streams that it speaks the protocol on. Close ends it with all of its processes and
// files, and makes a Read or Write that is under way return; it may be called more than once, and concurrently with them.
type Worker interface {
	io.ReadWriteCloser

	// Replace ends the worker and returns a new one for the same caller, in the container where this one was. The old
	// worker must be read to its end, and its Close does nothing from then on. nil: there is no container, or it has ended.
	Replace() Worker
}

// A Report says what a backend is able to do and how safely.
type Report struct {
	Backend    string // "local", "docker"
	Profile    string // "dynamic": programs under Landlock; "pure": only jq and sleep, which need no file
	Landlock   int    // ABI version of the kernel, 0 without
	Seccomp    bool
	NoNewPrivs bool
	UID        int      // of the worker
	Gaps       []string // what this kernel leaves to fewer layers than a new one, in words
	Programs   []Availability
	Added      programs.Added // those of the operator, with their grammar; the pool fills it in

	// Notes are for people, such as why a stronger backend is not used.
	Notes []string

	// Surroundings are the limits around the worker, of a container or its like, as the worker has seen them.
	wire.Surroundings

	// Workspace says that commands may read files of a workspace.
	Workspace bool

	// Warm is how many workers are started before there is a run for them, if [Options] do not say; 0 for the pool's own
	// number.
	Warm int

	// Waiting is how many workers may wait for another run of their caller; 0 for as many as there may be runs.
	Waiting int

	// RunsMemory is how many bytes all runs together may take; 0 where each has something around it that bounds it.
	RunsMemory int64

	// Runs is how many runs may hold a worker at a time, if Options do not say; 0 for the pool's own number.
	Runs int
}

// An Availability says whether one program of the table can be used.
type Availability struct {
	Name    string
	Version string // the first line of its version text; empty for what is part of mcsh
	Package string // the Debian package that brings it
	Refusal string // why it cannot be used; empty: it can
}

// StderrHeadMax is how many bytes of what a worker says are kept: the beginning, where the cause stands.
const StderrHeadMax = 4 << 10

// StderrHead keeps the beginning of what a worker, or what holds it, writes to standard error, for the error of a worker that
// is lost. It takes everything and never fails; its methods may be called concurrently.
type StderrHead struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements [io.Writer].
func (s *StderrHead) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf.Write(b[:min(len(b), StderrHeadMax-s.buf.Len())])
	return len(b), nil
}

// String returns what is kept, as text.
func (s *StderrHead) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(bytes.ToValidUTF8(bytes.TrimSpace(s.buf.Bytes()), []byte("?")))
}
