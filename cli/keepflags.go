package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/gateway/history"
	"github.com/mcsh-dev/mcsh/runs"
)

// addKeep adds the flags of the kept outputs of runs.
func addKeep(o *runs.Options) func(*cobra.Command) {
	return func(cmd *cobra.Command) {
		o.Head, o.Output, o.Total = 1<<20, 64<<20, 2<<30
		f := cmd.Flags()
		f.DurationVar(&o.TTL, "keep-for", 30*time.Minute, "how long a run is kept after its last use, for pipelines that begin with from")
		f.Var((*byteSize)(&o.Total), "keep-total", "size of all kept outputs together; the oldest runs are evicted; 0 keeps nothing")
		f.Var((*byteSize)(&o.Output), "keep-stage", "size of the kept output of one stage; longer outputs are not kept")
		f.Var((*byteSize)(&o.Head), "keep-memory", "the part of it that stays in memory; the rest is encrypted in files without names")
	}
}

// openKept returns the store of kept outputs, or nil if its total is zero.
func (p *program) openKept(o runs.Options, s settings, log *zap.Logger) (*runs.Store, error) {
	if o.Shared = s.shared; o.Shared != nil {
		has := "runs and saved pipelines"
		if s.store.logins {
			has = "runs, saved pipelines and sign-ins"
		}
		log.Info(has + " are in the shared store " + s.store.at)
	}
	if o.Total == 0 {
		if o.Shared != nil {
			return nil, usageError("leave one of them out", "--store shares the runs that are kept, and --keep-total 0 keeps none")
		}
		return nil, nil
	}
	if o.TTL <= 0 || o.Output <= 0 || o.Head <= 0 {
		return nil, usageError("--keep-total 0 keeps nothing", "--keep-for, --keep-stage and --keep-memory must be above zero")
	}
	o.Held = s.limits.gateway.Durable.Longest()
	o.Dir, o.Share, o.Beside = p.scratchDir(), s.shares.runs, map[string]time.Duration{history.Prefix: 0, gateway.DurablePrefix: o.Held}
	o.Head, o.Output = min(o.Head, o.Output), min(o.Output, o.Total)
	o.Problem = func(err error) { log.Warn("the shared store", zap.Error(err)) }
	return runs.New(o), nil
}

// closeKept closes the store of kept outputs, once the runs that have ended are where other gateways find them.
func closeKept(kept *runs.Store) error {
	if kept == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := kept.Sync(ctx)
	kept.Close()
	return err
}
