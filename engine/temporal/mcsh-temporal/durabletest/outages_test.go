package durabletest

import (
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/internal/porttest"
	"github.com/mcsh-dev/mcsh/store/storetest"
)

// TestTemporalKilled: a run goes on through the death of Temporal or of its database, and its client gets the reply. Where the outage is
// shorter than it takes to give a worker up, no call is repeated and no outcome is unknown.
func TestTemporalKilled(t *testing.T) {
	const items, concurrency = 250, 4
	for name, c := range map[string]struct {
		database bool // is killed, and not Temporal
		outage   time.Duration
		unknown  int
	}{
		"short":    {false, 3 * time.Second, 0},
		"long":     {false, 20 * time.Second, concurrency},
		"database": {true, time.Duration(parttest.Times(3, 20)) * time.Second, parttest.Times(0, concurrency)},
	} {
		t.Run(name, func(t *testing.T) {
			w := startWorld(t, c.database)
			front := w.agent(w.gateway(0))
			w.gateway(1)
			run := front.submit(each(arguments{N: items, Ms: 100}, `,"concurrency":4`, "post"))
			until(t, "the for_each has begun", func() bool { return len(w.tools.made("post")) >= items/5 })
			if c.database {
				w.postgres.Kill()
				time.Sleep(c.outage)
				w.postgres.Start()
			} else {
				address := w.engine.address
				w.engine.kill()
				time.Sleep(c.outage)
				w.temporal(address)
			}
			back := time.Now()
			front.succeeds(run)
			got := front.check(front.results(run), "post", items)
			t.Logf("without it for %s: %+v, ended %s after it was back", c.outage, got, time.Since(back).Round(time.Millisecond))
			if got.lost > 0 || got.repeated > 0 || got.unknown > c.unknown {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestTemporalGone: while Temporal is away, a call with durable is refused, and a status says what is known.
func TestTemporalGone(t *testing.T) {
	w := newWorld(t)
	front := w.agent(w.gateway(0))
	run := front.submit(each(arguments{N: 2}, "", "look"))
	address := w.engine.address
	w.engine.kill()
	text, failed, err := front.call(each(arguments{N: 1}, "", "look"), object{"durable": true})
	fine(t, err)
	if !failed || !strings.Contains(text, "the engine of durable runs cannot be used now") {
		t.Errorf("a new run: %s", text)
	}
	text, failed, err = front.call(from(run), object{"wait": 0.1})
	fine(t, err)
	if failed || !strings.Contains(text, "the engine of durable runs cannot be asked now") {
		t.Errorf("the run: %s", text)
	}
	w.temporal(address)
	w.gateway(1)
	if text, failed := front.wait(run); failed {
		t.Errorf("the run: %s", text)
	}
}

// TestStoreGone: while the store is away, tools that only read are called on, calls with effects wait for it, and nothing is lost.
func TestStoreGone(t *testing.T) {
	const items = 200
	s3 := storetest.S3(t)
	t.Setenv("AWS_ACCESS_KEY_ID", s3.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3.SecretKey)
	t.Run("of tools", func(t *testing.T) {
		for _, tool := range []string{"look", "post"} {
			t.Run(tool, func(t *testing.T) {
				link := newLink(t, s3.Endpoint)
				w := newWorld(t, "--store", "s3://"+s3.Bucket+"/"+tool, "--store-endpoint", "http://"+link.address)
				front := w.agent(w.gateway(0))
				w.gateway(1)
				run := front.submit(each(arguments{N: items, Ms: 150}, `,"concurrency":4`, tool))
				until(t, "the for_each has begun", func() bool { return len(w.tools.made(tool)) >= items/5 })
				back := link.interrupt(t)
				front.succeeds(run)
				got := front.check(front.results(run), tool, items)
				t.Logf("%s: without the store for %s: %+v, ended %s after it was back", tool, outage, got, time.Since(back).Round(time.Millisecond))
				if got.lost > 0 || got.unknown > 0 || tool == "post" && got.repeated > 0 {
					t.Errorf("got %+v", got)
				}
			})
		}
	})
}

// outage is how long a store is away: longer than a call waits for it.
const outage = 25 * time.Second

// A link leads to a server, and can be cut for all that use it.
type link struct {
	address, target string

	mu       sync.Mutex
	listener net.Listener // nil while it is cut; guarded by mu, as is everything below
	open     map[net.Conn]bool
}

func newLink(t *testing.T, endpoint string) *link {
	t.Helper()
	target, err := url.Parse(endpoint)
	fine(t, err)
	l := &link{address: porttest.Free(t), target: target.Host, open: map[net.Conn]bool{}}
	fine(t, l.listen())
	t.Cleanup(l.close)
	return l
}

func (l *link) listen() error {
	listener, err := net.Listen("tcp", l.address)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.listener, l.address = listener, listener.Addr().String()
	l.mu.Unlock()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go l.carry(c)
		}
	}()
	return nil
}

// carry passes on what one connection brings.
func (l *link) carry(c net.Conn) {
	defer c.Close()
	to, err := net.Dial("tcp", l.target)
	if err != nil {
		return
	}
	defer to.Close()
	l.mu.Lock()
	cut := l.listener == nil
	l.open[c] = true
	l.mu.Unlock()
	if cut {
		return
	}
	go func() {
		_, _ = io.Copy(to, c)
		to.Close()
	}()
	_, _ = io.Copy(c, to)
	l.mu.Lock()
	delete(l.open, c)
	l.mu.Unlock()
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != nil {
		l.listener.Close()
		l.listener = nil
	}
	for c := range l.open {
		c.Close()
	}
}

// interrupt cuts the link for some time, and returns when it was there again.
func (l *link) interrupt(t *testing.T) time.Time {
	t.Helper()
	l.close()
	time.Sleep(outage)
	fine(t, l.listen())
	return time.Now()
}
