package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// Of the question which version a program is.
const (
	versionTimeout = 10 * time.Second
	versionSize    = 16 << 10
	versionShown   = 200 // bytes of its first line
)

// probes is how many programs an audit looks at side by side.
const probes = 4

// Audit asks the worker at the other end of rwc, which it closes, what it can do, and each program, in its jail, which
// one it is. A worker that cannot lock its programs in is an error: it must not serve.
func Audit(ctx context.Context, backend string, rwc io.ReadWriteCloser) (Report, error) {
	client, err := wire.Dial(ctx, rwc)
	if err != nil {
		return Report{}, fmt.Errorf("auditing the %s backend: %w", backend, err)
	}
	defer client.Close()
	h := client.Hello()
	r, err := Claims(backend, h)
	if err != nil {
		return Report{}, err
	}
	found := slices.DeleteFunc(slices.Clone(h.Programs), func(f wire.Found) bool {
		p, _ := programs.Find(f.Name)
		return p.FilesOnly && !r.Workspace
	})
	r.Programs = make([]Availability, len(found))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(probes)
	for i, f := range found {
		group.Go(func() (err error) {
			r.Programs[i], err = identify(ctx, client, f)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Report{}, fmt.Errorf("auditing the %s backend: %w", backend, err)
	}
	return r, nil
}

// Claims turns a worker's hello into a report, without its programs. A worker that cannot lock programs in is an error.
func Claims(backend string, h wire.Hello) (Report, error) {
	r := Report{
		Backend: backend, Profile: string(h.Profile), Landlock: h.Landlock, Seccomp: h.Seccomp,
		NoNewPrivs: h.NoNewPrivs, UID: h.UID, Workspace: h.Workspace && h.Landlock > 0, Surroundings: h.Around, Gaps: gaps(h.Landlock),
	}
	if err := r.safe(); err != nil {
		return Report{}, fmt.Errorf("auditing the %s backend: %w", backend, err)
	}
	return r, nil
}

// safe says what is missing for commands to be harmless. A kernel without Landlock is safe with the pure profile.
func (r Report) safe() error {
	switch {
	case !r.Seccomp:
		return errors.New("its kernel offers no system call filters (seccomp)")
	case !r.NoNewPrivs:
		return errors.New("it could not set no_new_privs")
	case r.Profile == string(wire.Dynamic) && r.Landlock == 0:
		return errors.New("it claims to run programs without Landlock")
	}
	return nil
}

// identify finds out whether a program is the implementation that the grammar describes. The error means that the
// worker is lost, not that the program is wrong.
func identify(ctx context.Context, client *wire.Client, f wire.Found) (Availability, error) {
	p, known := programs.Find(f.Name)
	a := Availability{Name: f.Name, Package: p.Package, Refusal: f.Refusal}
	if !known || p.Bin == "" || a.Refusal != "" {
		return a, nil
	}
	text, failure, err := versionText(ctx, client, p)
	if err != nil {
		return a, err
	}
	a.Version, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	a.Version = texts.Cut(a.Version, versionShown)
	switch {
	case failure != nil && !strings.Contains(text, p.Mark):
		a.Refusal = fmt.Sprintf("%s --version failed in the jail (%s)", p.Bin,
			strings.TrimSpace(texts.Cut(string(failure.Reason)+" "+failure.Detail+failure.Stderr, 200)))
	case !strings.Contains(text, p.Mark):
		a.Refusal = fmt.Sprintf("this %s is another implementation (%s)", p.Bin, texts.Cut(a.Version, 60))
	}
	return a, nil
}

// versionText runs a program on empty input, and ends it when it has written versionSize bytes. A worker that takes longer
// than ctx is lost.
func versionText(ctx context.Context, client *wire.Client, p programs.Program) (string, *wire.Failure, error) {
	return collect(ctx, client, versionSize, wire.Chain{Memory: Memory, Disk: Disk, Commands: []wire.Command{
		{Name: p.Name, Argv: []string{p.Bin, "--version"}, Timeout: versionTimeout},
	}})
}

// collect runs a chain on empty input and returns its output, as versionText does.
func collect(ctx context.Context, client *wire.Client, limit int64, chain wire.Chain) (string, *wire.Failure, error) {
	prepared, err := wire.Prepare(chain)
	if err != nil {
		return "", nil, err
	}
	defer context.AfterFunc(ctx, func() { client.Fail(context.Cause(ctx)) })()
	s, err := client.Run(prepared)
	if err != nil {
		return "", nil, err
	}
	if err := s.End(); err != nil {
		return "", nil, err
	}
	text, err := io.ReadAll(io.LimitReader(s, limit))
	if err != nil {
		return "", nil, err
	}
	if int64(len(text)) == limit {
		_ = s.Cancel() // a lost connection shows in Outcome
	}
	o, err := s.Outcome()
	return string(text), o.Failure, err
}
