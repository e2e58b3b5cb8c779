package sandboxtest

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// cutter is a driver whose last connection can be cut.
type cutter struct {
	sandbox.Driver

	mu   sync.Mutex
	last io.Closer
}

func (c *cutter) Open(ctx context.Context) (sandbox.Worker, error) {
	worker, err := c.Driver.Open(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = worker
	return worker, err
}

func (c *cutter) cut() {
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	last.Close()
}

func testLost(t *testing.T, open func() sandbox.Driver) {
	c := &cutter{Driver: open()}
	p := newPool(t, func() sandbox.Driver { return c }, sandbox.Options{Warm: -1})
	s := openSession(t, p)
	f := prepare(t, s, nil, command("awk", `BEGIN{print "x"; fflush(); for(;;);}`))
	var once sync.Once
	out := writerFunc(func(p []byte) (int, error) { once.Do(c.cut); return len(p), nil })
	e := asError(t, f(t.Context(), strings.NewReader(""), out))
	if e.Code != stages.Internal || !strings.Contains(e.Msg, "sandbox_lost") || e.Hint == "" {
		t.Errorf("got %s: %s (%s), want %s, sandbox_lost and a hint", e.Code, e.Msg, e.Hint, stages.Internal)
	}
	if _, err := run(t.Context(), f, ""); err == nil {
		t.Error("a lost worker ran a chain")
	}
	again := openSession(t, p)
	if out, err := run(t.Context(), prepare(t, again, nil, command("wc", "-c")), "abc"); err != nil || out != "3\n" {
		t.Errorf("the next run: got %q, %v", out, err)
	}
}

// testNotStarted has a chain whose middle cannot be started: the rest must end, and the worker go on.
func testNotStarted(t *testing.T, open func() sandbox.Driver) {
	r := newRaw(t, open)
	if o, err := r.start(t, wire.Chain{}).Outcome(); err != nil || o.Failure == nil || o.Failure.Reason != wire.Refused {
		t.Errorf("an empty chain: got %+v, %v, want a refusal", o.Failure, err)
	}
	var chain wire.Chain
	for _, name := range []string{"wc", "no-such-program", "wc"} {
		chain.Commands = append(chain.Commands, wire.Command{Name: name, Argv: []string{name}, Timeout: time.Minute})
	}
	o, err := r.start(t, chain).Outcome()
	if err != nil || o.Failure == nil || o.Failure.Reason != wire.Refused || o.Failure.Command != 1 {
		t.Errorf("got %+v, %v, want command 1 refused", o.Failure, err)
	}
	if said, _, _, err := r.run(t.Context(), "wc", []string{"-c"}, strings.NewReader("abc")); err != nil || said != "3\n" {
		t.Errorf("afterwards: got %q, %v", said, err)
	}
}

func testPool(t *testing.T, open func() sandbox.Driver) {
	p := newPool(t, open, sandbox.Options{Max: 1})
	first := openSession(t, p)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Open(ctx, "somebody"); err == nil {
		t.Fatal("two sessions at a time, want one")
	} else if e := asError(t, err); e.Code != stages.LimitExceeded {
		t.Errorf("got %s, want %s", e.Code, stages.LimitExceeded)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if err := first.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	second := openSession(t, p)
	f := prepare(t, second, nil, command("awk", "BEGIN{for(;;);}"))
	done := make(chan error)
	go func() {
		_, err := run(context.Background(), f, "")
		done <- err
	}()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-done:
		if err == nil {
			t.Error("a chain survived Close as a success")
		}
	case <-time.After(time.Minute):
		t.Fatal("a chain survived Close")
	}
	if _, err := p.Open(t.Context(), "somebody"); err == nil {
		t.Error("Open after Close gave a session")
	}
}
