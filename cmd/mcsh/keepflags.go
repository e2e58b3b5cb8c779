package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/store"
)

// keepFlags say how long runs are kept, and where.
type keepFlags struct {
	runs.Options
	store    string // DIR, or s3://BUCKET/PREFIX; empty: none
	keyFile  string // of the store
	endpoint string // of S3
}

// Variables that replace flags of the store.
const (
	storeVariable    = "MCSH_STORE"
	storeKeyVariable = "MCSH_STORE_KEY_FILE"
)

// add adds the flags.
func (k *keepFlags) add(cmd *cobra.Command) {
	k.Head, k.Output, k.Total = 1<<20, 64<<20, 2<<30
	f := cmd.Flags()
	f.DurationVar(&k.TTL, "keep-for", 30*time.Minute, "how long a run is kept after its last use, for pipelines that begin with from")
	f.Var((*byteSize)(&k.Total), "keep-total", "size of all kept outputs together; the oldest runs are evicted; 0 keeps nothing")
	f.Var((*byteSize)(&k.Output), "keep-stage", "size of the kept output of one stage; longer outputs are not kept")
	f.Var((*byteSize)(&k.Head), "keep-memory", "the part of it that stays in memory; the rest is encrypted in files without names")
	f.StringVar(&k.store, "store", "", "shared by gateways that are one for their clients: a directory, or s3://BUCKET/PREFIX ($"+storeVariable+")")
	f.StringVar(&k.keyFile, "store-key-file", "", "file of the keys that seal what is in the store ($"+storeKeyVariable+")")
	f.StringVar(&k.endpoint, "store-endpoint", "", "address of the S3 service, such as http://minio:9000 ($AWS_ENDPOINT_URL_S3); that of AWS by default")
}

// openKept returns the store of kept outputs, or nil if its total is zero.
func (p *program) openKept(ctx context.Context, k keepFlags, share *memory.Share, log *zap.Logger) (*runs.Store, error) {
	o := k.Options
	if o.Total == 0 {
		return nil, nil
	}
	if o.TTL <= 0 || o.Output <= 0 || o.Head <= 0 {
		return nil, usageError("--keep-total 0 keeps nothing", "--keep-for, --keep-stage and --keep-memory must be above zero")
	}
	o.Dir, o.Share = p.scratchDir(), share
	o.Head, o.Output = min(o.Head, o.Output), min(o.Output, o.Total)
	var err error
	if o.Shared, err = p.openStore(ctx, k); err != nil {
		return nil, err
	}
	o.Problem = func(err error) { log.Warn("the shared store", zap.Error(err)) }
	return runs.New(o), nil
}
