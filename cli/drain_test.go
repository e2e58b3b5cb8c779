package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
)

// A draining is a server over HTTP that gets signals.
type draining struct {
	shutdown
	signal, again context.CancelFunc
	served        chan error
}

// drains starts a server with flags. Its stop takes as long as the grace.
func drains(t *testing.T, listener net.Listener, flags ...string) *draining {
	t.Helper()
	e := &shutdownFlags{grace: 10 * time.Second}
	cmd := &cobra.Command{}
	e.drain.add(cmd)
	if err := cmd.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	d := &draining{served: make(chan error, 1)}
	d.grace, d.drain, d.stop = e.grace, &e.drain, func(ctx context.Context) error { <-ctx.Done(); return nil }
	d.signalled, d.signal = context.WithCancel(t.Context())
	d.forced, d.again = context.WithCancel(context.Background())
	ctx, stop := d.drained(d.signalled, true)
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.Handle("/readyz", d.drain.asking(h))
	go func() {
		defer stop()
		d.served <- serveHTTP(ctx, []net.Listener{listener}, newConnections(1000, 1000, gateway.Proxies{}), mux, d.shutdown)
	}()
	t.Cleanup(func() { d.signal(); d.again() })
	return d
}

// TestDrain: the listener closes when the drain is over, and the grace begins then; the second signal ends either.
func TestDrain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		flags []string
		path  string        // asked before the signal
		again time.Duration // the second signal after the first; 0: none

		closes, ends time.Duration // after the first signal
	}{
		"somebody asked":          {path: "/readyz", closes: 5 * time.Second, ends: 15 * time.Second},
		"nobody asked":            {path: "/healthz", closes: 0, ends: 10 * time.Second},
		"given":                   {flags: []string{"--drain", "7s"}, path: "/healthz", closes: 7 * time.Second, ends: 17 * time.Second},
		"none":                    {flags: []string{"--drain", "0"}, path: "/readyz", closes: 0, ends: 10 * time.Second},
		"second signal in it":     {path: "/readyz", again: 2 * time.Second, closes: 2 * time.Second, ends: 2 * time.Second},
		"second signal behind it": {path: "/readyz", again: 8 * time.Second, closes: 5 * time.Second, ends: 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := &closing{Pipes: mcptest.NewPipes()}
				d := drains(t, listener, tt.flags...)
				ours := listener.Dial(t)
				answers := bufio.NewReader(ours)
				asks(t, ours, answers, tt.path, false)
				begun := time.Now()
				d.signal()
				synctest.Wait()
				if tt.closes > 0 {
					asks(t, ours, answers, "/", true) // also on an idle connection
				}
				if tt.again > 0 {
					time.AfterFunc(tt.again, d.again)
				}
				if err := <-d.served; err != nil {
					t.Error(err)
				}
				if got := time.Since(begun); got != tt.ends {
					t.Errorf("it ended after %v, want %v", got, tt.ends)
				}
				if got := listener.at.Sub(begun); got != tt.closes {
					t.Errorf("the listener closed after %v, want %v", got, tt.closes)
				}
			})
		})
	}
}

// closing is a listener that notes when it closes first.
type closing struct {
	*mcptest.Pipes
	once sync.Once
	at   time.Time
}

func (c *closing) Close() error {
	c.once.Do(func() { c.at = time.Now() })
	return c.Pipes.Close()
}

// asks sends a request, and checks whether the answer is the last on its connection.
func asks(t *testing.T, conn net.Conn, answers *bufio.Reader, path string, last bool) {
	t.Helper()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
	resp, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(resp.Body); string(text) != "ok" || err != nil || resp.Close != last {
		t.Errorf("%s: %q, %v, the connection closes: %v, want %v", path, text, err, resp.Close, last)
	}
}

// TestDrainLosesNothing: many clients that send one request after another on open connections, and go elsewhere in the drain, lose
// none.
func TestDrainLosesNothing(t *testing.T) {
	t.Parallel() // it waits
	const clients, phase = 64, 200 * time.Millisecond
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := drains(t, listener, "--drain", "10s")
	elsewhere, moves := context.WithCancel(t.Context())
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	var all sync.WaitGroup
	failed := make(chan error, clients)
	var late, moved int // answers in the drain, and those of them that end their connections
	var mu sync.Mutex
	for range clients {
		all.Go(func() {
			for elsewhere.Err() == nil {
				ending := d.ending()
				resp, err := transport.RoundTrip(post(t, "http://"+listener.Addr().String()))
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					err = errors.Join(err, resp.Body.Close())
				}
				if err != nil {
					failed <- err
					return
				}
				mu.Lock()
				if ending {
					late++
				}
				if ending && resp.Close {
					moved++
				}
				mu.Unlock()
			}
		})
	}
	time.AfterFunc(phase, d.signal)
	time.AfterFunc(2*phase, moves)
	all.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	if late == 0 || moved != late {
		t.Errorf("of %d answers in the drain, %d ended their connections", late, moved)
	}
	d.again()
	if err := <-d.served; err != nil {
		t.Error(err)
	}
}

// post is a request that the transport does not send twice: it cannot read the body again.
func post(t *testing.T, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, io.MultiReader(strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
