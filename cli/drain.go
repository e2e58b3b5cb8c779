package cli

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
	time    time.Duration
	flag    *pflag.Flag // nil: the command has no drain
	listens atomic.Bool // on an address
	asked   atomic.Bool // there was a request to /readyz
}

func (d *drain) add(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&d.time, "drain", defaultDrain, "how long requests are still answered after the signal, with /readyz at 503, before --grace; "+
		"unless set, only if /readyz was ever requested; 0 for none")
	d.flag = cmd.Flags().Lookup("drain")
}

// length returns how long the drain takes if it begins now.
func (d *drain) length() time.Duration {
	if d.flag == nil || !d.listens.Load() || !d.flag.Changed && !d.asked.Load() {
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

// drained returns a context that ends when the drain is over; the drain begins when ctx ends, at the first signal. The second signal
// ends it at once. A server that does not listen has no drain.
func (e shutdown) drained(ctx context.Context, listens bool) (context.Context, context.CancelFunc) {
	if !listens {
		return ctx, func() {}
	}
	e.drain.listens.Store(true)
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
