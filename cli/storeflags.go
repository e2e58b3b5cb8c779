package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/observe"
	"github.com/mcsh-dev/mcsh/store"
)

const s3Scheme = "s3://"

// storeFlags name the store that gateways share.
type storeFlags struct {
	at       string // DIR, or s3://BUCKET/PREFIX; empty: there is none
	keyFile  string
	endpoint string // of S3; empty: that of AWS
	logins   bool   // it has the sign-ins, too
}

// storeLoginsVariable with the value "on" stands for --store-logins.
const storeLoginsVariable = "MCSH_STORE_LOGINS"

func (f *storeFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.at, "store", "", "a store that several gateways share, a directory or s3://BUCKET/PREFIX (default: $MCSH_STORE)")
	flags.StringVar(&f.keyFile, "store-key-file", "", "file with the keys of the store, ID:KEY in each line (default: $MCSH_STORE_KEY_FILE)")
	flags.StringVar(&f.endpoint, "store-endpoint", "", "address of the S3 service, such as http://minio:9000 (default: $AWS_ENDPOINT_URL_S3, else that of AWS)")
	flags.BoolVar(&f.logins, "store-logins", false, "keep the sign-ins of mcsh login in the store, for all gateways, and not in the state directory ($"+storeLoginsVariable+"=on)")
}

// resolve takes what no flag has set from the environment.
func (f *storeFlags) resolve(p *program) error {
	for _, row := range []struct {
		flag     *string
		variable string
	}{{&f.at, "MCSH_STORE"}, {&f.keyFile, "MCSH_STORE_KEY_FILE"}, {&f.endpoint, "AWS_ENDPOINT_URL_S3"}, {&f.endpoint, "AWS_ENDPOINT_URL"}} {
		if *row.flag == "" {
			*row.flag = p.env[row.variable]
		}
	}
	value := cmp.Or(p.env[storeLoginsVariable], "off")
	if value != "on" && value != "off" {
		return configError("on keeps the sign-ins in the store; off, or nothing, does not", fmt.Errorf("%s=%s: want on or off", storeLoginsVariable, texts.Fit(value, 40)))
	}
	f.logins = f.logins || value == "on"
	return nil
}

// open returns the store, sealed; nil: there is none. A program opens each store once.
func (f storeFlags) open(ctx context.Context, p *program) (store.Store, error) {
	if err := f.resolve(p); err != nil {
		return nil, err
	}
	return once(&p.stores.mu, &p.stores.shared, f, func() (store.Store, error) { return f.openSealed(ctx, p) })
}

func (f storeFlags) openSealed(ctx context.Context, p *program) (store.Store, error) {
	switch scheme, _, isURL := strings.Cut(f.at, ":/"); {
	case f.at == "" && f.logins:
		return nil, usageError("name the store with --store or $MCSH_STORE", "--store-logins keeps the sign-ins in a shared store, and there is none")
	case f.at == "" && f.keyFile == "":
		return nil, nil
	case f.at == "":
		return nil, usageError("name the store with --store or $MCSH_STORE", "there is a key file of a store, and no store")
	case isURL && !strings.HasPrefix(f.at, s3Scheme) || strings.TrimRight(f.at, "/") == "s3:" || strings.TrimSpace(f.at) != f.at:
		return nil, usageError("write a directory, or s3://BUCKET/PREFIX", "--store: %q is no place of a store", scheme)
	case f.keyFile == "":
		return nil, usageError(`make a key: echo "k1:$(openssl rand -base64 32)" > store.keys; chmod 600 store.keys`, "--store needs --store-key-file")
	}
	keys, err := store.ReadKeys(f.keyFile)
	if err != nil {
		return nil, configError("", err)
	}
	unsealed, err := f.openUnsealed(ctx, p)
	if err != nil {
		return nil, err
	}
	sealed, err := store.OpenSealed(ctx, unsealed, keys)
	if err != nil {
		return nil, configError("", err)
	}
	if p.stores.metrics == nil {
		p.stores.metrics = observe.NewStoreMetrics()
	}
	return p.stores.metrics.Watch(sealed), nil
}

func (f storeFlags) openUnsealed(ctx context.Context, p *program) (store.Store, error) {
	at, inS3 := strings.CutPrefix(f.at, s3Scheme)
	if !inS3 {
		dir, err := store.OpenDirectory(f.at)
		if err != nil {
			return nil, configError("run all gateways as one user, who can write the directory", err)
		}
		return dir, nil
	}
	bucket, prefix, _ := strings.Cut(at, "/")
	s3, err := store.OpenS3(ctx, store.S3Options{
		Endpoint: f.endpoint, Region: p.env["AWS_REGION"], Bucket: bucket, Prefix: prefix,
		AccessKey: p.env["AWS_ACCESS_KEY_ID"], SecretKey: p.env["AWS_SECRET_ACCESS_KEY"], SessionToken: p.env["AWS_SESSION_TOKEN"],
	})
	if err != nil {
		return nil, configError("", err)
	}
	return s3, nil
}
