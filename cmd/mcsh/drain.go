package main

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// defaultDrain is longer than what load balancers usually take to notice /readyz.
const defaultDrain = 5 * time.Second

// A drain is the time between the first signal and the end of the listener. /readyz answers 503 then, so that load balancers send
// new requests elsewhere; requests that still come are answered. Without the flag there is a drain only after a request to /readyz, so
// that Ctrl-C at a terminal takes effect at once.
type drain struct {
	time  time.Duration
	flag  *pflag.Flag // nil: the command has no drain
	http  atomic.Bool // the server listens
	asked atomic.Bool // there was a request to /readyz
}

func (d *drain) add(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&d.time, "drain", defaultDrain, "time to answer new requests after the signal, while /readyz is 503 and before --grace; "+
		"without the flag only after a request to /readyz; 0 for none")
	d.flag = cmd.Flags().Lookup("drain")
}

// length returns how long the drain takes if it begins now.
func (d *drain) length() time.Duration {
	if d.flag == nil || !d.http.Load() || !d.flag.Changed && !d.asked.Load() {
		return 0
	}
	return d.time
}

// asking notes requests to a handler of /readyz.
func (d *drain) asking(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.asked.Store(true)
		h.ServeHTTP(w, r)
	})
}

// drained returns a context that ends with the drain after ctx, which the first signal ends. The second signal ends it at once. Without
// HTTP there is no drain.
func (e shutdown) drained(ctx context.Context, http bool) (context.Context, context.CancelFunc) {
	if !http {
		return ctx, func() {}
	}
	e.drain.http.Store(true)
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		defer end()
		timer := time.NewTimer(e.drain.length())
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-e.forced.Done():
		case <-serving.Done():
		}
	})
	return serving, func() { stop(); end() }
}

// ending reports whether the first signal has come.
func (e shutdown) ending() bool { return e.signalled != nil && e.signalled.Err() != nil }

// moving has clients open new connections after the first signal, so that load balancers choose again. Idle connections stay open
// during the drain: a request may be on its way on each.
func (e shutdown) moving(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if e.ending() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}
