// Command mcsh-temporal-dev is Temporal's own server for one machine, with a SQLite file or PostgreSQL: what mcsh needs for durable
// runs where nobody operates a Temporal cluster.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"go.temporal.io/server/common/log"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/engine/temporal/dev/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "mcsh-temporal-dev:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	level := zap.NewAtomicLevelAt(zap.WarnLevel)
	zlog, err := zap.Config{Level: level, Encoding: "console", EncoderConfig: log.DefaultZapEncoderConfig, OutputPaths: []string{"stderr"}}.Build()
	if err != nil {
		return err
	}
	o := server.Options{Log: log.NewZapLogger(zlog)}
	flag.StringVar(&o.Listen, "listen", "127.0.0.1:7233", "`IP:PORT` to listen on; everybody who reaches it is let in, without TLS")
	flag.StringVar(&o.Database, "db", "",
		"SQLite `FILE` or postgresql://USER@HOST:PORT/NAME, created if there is none (default: in memory, gone when the server ends)")
	flag.StringVar(&o.Namespace, "namespace", "default", "`NAME` of the namespace, created if there is none")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", flag.Arg(0))
	}
	if o.Database == "" {
		fmt.Fprintln(os.Stdout, "jobs are kept in memory and gone when this server ends; --db FILE keeps them")
	}
	s, err := server.Start(ctx, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "Temporal listens on %s, namespace %s\n", s.Address, o.Namespace)
	<-ctx.Done()
	level.SetLevel(zap.FatalLevel) // the services complain of each other while they end
	return s.Stop()
}
