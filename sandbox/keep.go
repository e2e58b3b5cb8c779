package sandbox

import (
	"context"
	"io"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// Keep implements [stages.Session]. A Read of in may still be under way when it returns, as with a filter.
func (s *session) Keep(ctx context.Context, set int, name string, in io.Reader) error {
	limit := s.pool.budget.Disk
	chain, err := wire.Prepare(wire.Chain{Keep: &wire.Input{Set: uint32(set), Name: name, Disk: limit}})
	if err != nil {
		return err
	}
	x, err := s.exchange(ctx, s.keeping, chain, in, io.Discard)
	switch {
	case err != nil:
		return err
	case x.lost == nil && x.outcome.Failure == nil:
		return nil
	case ctx.Err() != nil:
		return cancelled(ctx)
	case x.read != nil:
		return x.read
	case x.lost != nil:
		return lostError(x.lost)
	}
	return notKept(name, limit, x.outcome.Failure)
}

// notKept makes an error of an input that the worker has not kept.
func notKept(name string, limit int64, f *wire.Failure) error {
	if f.Reason == wire.DiskLimit {
		return stages.Errorf(stages.LimitExceeded, "let the stages of the input pass on only what the command needs: fewer rows, fewer fields",
			"the named inputs of the run, here @%s, need more than %s on disk, the limit of a run, or the disk is full", name, texts.Bytes(limit))
	}
	return stages.Errorf(stages.Internal, "this is the server's fault, not the pipeline's: ask whoever runs it to run mcsh commands",
		"the input @%s could not be kept: %s %s", name, f.Reason, texts.Cut(f.Detail, stderrShown))
}
