package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/gateway"
)

// endFlags say how a server ends.
type endFlags struct{ grace time.Duration }

func (e *endFlags) add(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&e.grace, "grace", gateway.DefaultGrace,
		"how long what runs may go on after SIGTERM, SIGINT or SIGHUP, and after its client was lost; a second signal cancels at once")
}

// watched makes the function of a command of one that is told how the server ends. Whoever asks for the end reads on w
// what comes of it.
func (e *endFlags) watched(w io.Writer, serve func(context.Context, ending) error) func(context.Context, []string) error {
	return func(ctx context.Context, _ []string) error {
		if e.grace < 0 {
			return usageError("--grace 0 cancels at once", "--grace %v is below zero", e.grace)
		}
		hurry, stop := secondSignal(ctx, func() { fmt.Fprintln(w, e.promise()) })
		defer stop()
		return serve(ctx, ending{grace: e.grace, hurry: hurry})
	}
}

// promise says what follows the first signal.
func (e *endFlags) promise() string {
	if e.grace == 0 {
		return "ending: what runs is cancelled"
	}
	return fmt.Sprintf("ending: what runs may go on for %v, and a second signal cancels it", e.grace)
}

// secondSignal returns a context that ends with the second of the [endSignals]. The third is nobody's, and ends the
// process. A SIGHUP behind another signal is none: it comes twice when a terminal is closed. first is called after the
// first one: signals of which one comes before the other has been taken may be taken in any order, or as one.
func secondSignal(ctx context.Context, first func()) (context.Context, context.CancelFunc) {
	hurry, cancel := context.WithCancel(context.WithoutCancel(ctx))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, endSignals()...)
	go func() {
		defer signal.Stop(signals)
		for n := 0; n < 2; {
			select {
			case s := <-signals:
				if n == 0 {
					first()
				}
				if n == 0 || s != syscall.SIGHUP {
					n++
				}
			case <-hurry.Done():
				return
			}
		}
		cancel()
	}()
	return hurry, cancel
}

// An ending is how a server ends.
type ending struct {
	grace time.Duration
	hurry context.Context // done when the grace is over before its time; nil: never

	// finish stops the server: nothing is begun any more, and what runs has time until ctx is done. nil closes the session.
	finish func(ctx context.Context) error
}

// begin returns the context that ends with the grace, which begins now.
func (e ending) begin() (context.Context, context.CancelFunc) {
	hurry := e.hurry
	if hurry == nil {
		hurry = context.Background()
	}
	return context.WithTimeout(hurry, e.grace)
}

// gatewayGrace is the grace in the words of [gateway.Options].
func (e ending) gatewayGrace() time.Duration {
	if e.grace == 0 {
		return -1
	}
	return e.grace
}
