package main

import (
	"context"
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

// openStore opens the store that gateways share, sealed; nil: there is none.
func (p *program) openStore(ctx context.Context, k keepFlags) (store.Store, error) {
	if k.store == "" {
		return nil, nil
	}
	if k.keyFile == "" {
		return nil, usageError("make a key with: echo \"k1:$(openssl rand -base64 32)\" > KEYS; chmod 600 KEYS", "--store needs --store-key-file")
	}
	keys, err := store.ReadKeys(k.keyFile)
	if err != nil {
		return nil, configError("each line of it is ID:KEY, the newest key first", err)
	}
	at, isS3 := strings.CutPrefix(k.store, "s3://")
	if !isS3 {
		dir, err := store.OpenDirectory(k.store)
		if err != nil {
			return nil, configError("all gateways need a directory that this user can write", err)
		}
		return store.Seal(dir, keys), nil
	}
	bucket, prefix, _ := strings.Cut(at, "/")
	s3, err := store.OpenS3(ctx, store.S3Options{
		Endpoint: k.endpoint, Region: p.env["AWS_REGION"], Bucket: bucket, Prefix: prefix,
		AccessKey: p.env["AWS_ACCESS_KEY_ID"], SecretKey: p.env["AWS_SECRET_ACCESS_KEY"], SessionToken: p.env["AWS_SESSION_TOKEN"],
	})
	if err != nil {
		return nil, configError("$AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY, or the identity of the machine, must be able to list, read, write and delete objects there", err)
	}
	return store.Seal(s3, keys), nil
}

// resolve takes what no flag has set from the environment.
func (k *keepFlags) resolve(p *program) error {
	for _, row := range []struct {
		flag     *string
		variable string
	}{{&k.store, storeVariable}, {&k.keyFile, storeKeyVariable}, {&k.endpoint, "AWS_ENDPOINT_URL_S3"}, {&k.endpoint, "AWS_ENDPOINT_URL"}} {
		if *row.flag == "" {
			*row.flag = p.env[row.variable]
		}
	}
	if k.store != "" && k.Total == 0 {
		return usageError("leave one of them out", "--store shares the runs that are kept, and --keep-total 0 keeps none")
	}
	return nil
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
