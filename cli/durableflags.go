package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/namedfile"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/store"
)

// EngineOptions say where the engine of durable runs is.
type EngineOptions struct {
	Address, Namespace string
	TLS                *tls.Config // nil: none, unless APIKey is set
	APIKey             string
	Log                *zap.Logger
}

// Engines do durable runs, and shards of runs.
type Engines struct {
	Runs, Shards gateway.Engine
	Close        func()
}

// A Connect connects to the engines of durable runs.
type Connect func(ctx context.Context, o EngineOptions) (Engines, error)

// durableFlags say which runs are durable, and what does them.
type durableFlags struct {
	flags              *pflag.FlagSet
	address, namespace string
	ca, cert, key      string // files of TLS
	apiKey             string // file
	tls                bool
	runs               string // which are durable
	jobs, concurrency  int
}

// Values of --durable.
const (
	durableAsked  = "asked"
	durableAlways = "always"
)

// mostConcurrency bounds --durable-concurrency: a gateway waits for that many items, and holds the shards that they are in.
const mostConcurrency = 1024

// temporalVariable replaces --temporal.
const temporalVariable = "MCSH_TEMPORAL"

// add adds the flags of a gateway.
func (f *durableFlags) add(cmd *cobra.Command) {
	f.addEngine(cmd)
	f.flags.StringVar(&f.runs, "durable", durableAsked, "which runs of agents are durable: asked (those with durable: true) or always")
	f.flags.IntVar(&f.jobs, "durable-jobs", 4, "durable runs, and parts of them, that this gateway does at once; 0 leaves them to others")
	f.flags.IntVar(&f.concurrency, "durable-concurrency", gateway.DefaultSpreadConcurrency, "items of a for_each that workers run at once, where it only reads and names no concurrency")
}

// addEngine adds the flags that say where the engine is.
func (f *durableFlags) addEngine(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.flags = flags
	flags.StringVar(&f.address, "temporal", "", "address of Temporal, HOST:PORT, for runs that go on when a gateway dies; needs --store and the program mcsh-temporal (default: $"+temporalVariable+")")
	flags.StringVar(&f.namespace, "temporal-namespace", "default", "namespace there")
	flags.BoolVar(&f.tls, "temporal-tls", false, "connect with TLS; the following flags imply it")
	flags.StringVar(&f.ca, "temporal-ca", "", "file with the certificates that its server's may come from (default: those of the system)")
	flags.StringVar(&f.cert, "temporal-cert", "", "file with the certificate of this gateway, for mutual TLS")
	flags.StringVar(&f.key, "temporal-cert-key", "", "file with its key")
	flags.StringVar(&f.apiKey, "temporal-api-key-file", "", "file with an API key, as Temporal Cloud has them")
}

// connect completes the options of durable runs, and returns a function that ends the connection to their engines.
func (f *durableFlags) connect(ctx context.Context, p *program, shared store.Store, o *gateway.Durable, log *zap.Logger) (disconnect func(), err error) {
	switch {
	case f.runs != durableAsked && f.runs != durableAlways:
		return nil, usageError("write asked or always", "--durable %s: unknown", f.runs)
	case f.jobs < 0:
		return nil, usageError("--durable-jobs 0 leaves durable runs to others", "--durable-jobs %d is below zero", f.jobs)
	case f.concurrency < 1 || f.concurrency > mostConcurrency:
		return nil, usageError(fmt.Sprintf("give a number from 1 to %d", mostConcurrency), "--durable-concurrency %d is out of range", f.concurrency)
	}
	wanted, err := f.resolve(p)
	switch {
	case err != nil:
		return nil, err
	case !wanted:
		return func() {}, nil
	case shared == nil:
		return nil, usageError("name a store with --store", "--temporal needs the store where gateways and workers find durable runs")
	}
	engines, err := f.open(ctx, p, log)
	if err != nil {
		return nil, err
	}
	if _, set := p.env["GOGC"]; !set {
		debug.SetGCPercent(durableGCPercent)
	}
	o.Engine, o.Shards, o.Slots, o.Always = engines.Runs, engines.Shards, f.jobs, f.runs == durableAlways
	o.SpreadConcurrency = f.concurrency
	log.Info("durable runs are done by Temporal at "+f.address, zap.Int("jobs", f.jobs))
	return engines.Close, nil
}

// resolve takes the address from the environment, and reports whether there is an engine.
func (f *durableFlags) resolve(p *program) (wanted bool, err error) {
	f.address = cmp.Or(f.address, p.env[temporalVariable])
	if f.address != "" {
		if _, port, err := net.SplitHostPort(f.address); err != nil || port == "" {
			return false, usageError("write HOST:PORT, such as 127.0.0.1:7233", "--temporal %s is no address with a port", texts.Quote(f.address))
		}
		return true, nil
	}
	f.flags.Visit(func(flag *pflag.Flag) {
		if strings.HasPrefix(flag.Name, "temporal-") || strings.HasPrefix(flag.Name, "durable") {
			err = usageError("name Temporal with --temporal or $"+temporalVariable, "--%s needs an engine of durable runs", flag.Name)
		}
	})
	return false, err
}

// open connects to the engines.
func (f *durableFlags) open(ctx context.Context, p *program, log *zap.Logger) (Engines, error) {
	if p.connectEngines == nil {
		return Engines{}, usageError("start mcsh-temporal instead, with the same flags", "this program has no client of Temporal")
	}
	settings, err := f.options(log)
	if err != nil {
		return Engines{}, err
	}
	engines, err := p.connectEngines(ctx, settings)
	if err != nil {
		return Engines{}, &failure{exitUnreachable, err, ""}
	}
	return engines, nil
}

const maxPEM = 1 << 20

// options reads the files of the flags.
func (f *durableFlags) options(log *zap.Logger) (EngineOptions, error) {
	o := EngineOptions{Address: f.address, Namespace: f.namespace, Log: log}
	if f.tls || f.ca != "" || f.cert != "" || f.key != "" || f.apiKey != "" {
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if f.ca != "" {
		text, err := namedfile.Read(f.ca, maxPEM)
		if err != nil {
			return o, configError("", fmt.Errorf("--temporal-ca: %w", err))
		}
		o.TLS.RootCAs = x509.NewCertPool()
		if !o.TLS.RootCAs.AppendCertsFromPEM(text) {
			return o, configError("give it certificates in PEM", errors.New("--temporal-ca: the file has no certificate"))
		}
	}
	if f.cert != "" || f.key != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return o, configError("give --temporal-cert and --temporal-cert-key files in PEM that belong together", fmt.Errorf("the certificate for Temporal: %w", err))
		}
		o.TLS.Certificates = []tls.Certificate{pair}
	}
	if f.apiKey != "" {
		text, err := namedfile.ReadSecret(f.apiKey, maxPEM)
		if err != nil {
			return o, configError("", fmt.Errorf("--temporal-api-key-file: %w", err))
		}
		o.APIKey = strings.TrimSpace(string(text))
	}
	return o, nil
}

// work has a gateway do durable runs until stop is called. Without them it still takes calls, and its operator learns why.
func work(ctx context.Context, g *gateway.Gateway, log *zap.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := g.Work(ctx); err != nil {
			log.Error("this gateway does no durable runs any more; start it again", zap.Error(err))
		}
	}()
	return func() { cancel(); <-ended }
}
