package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// asker is a wire whose other side asks, and takes answers only when the test says so.
type asker struct {
	asks  []string
	takes <-chan struct{}

	got chan string // answers, whether they are taken or not

	mu      sync.Mutex
	waiting int // answers that are not taken, guarded by mu
	most    int // of them at the same time, guarded by mu
}

func (a *asker) Prepare(*memory.Share, int) {}

func (a *asker) Lease() *memory.Lease { return nil }

func (a *asker) Next() ([]byte, error) {
	if len(a.asks) == 0 {
		return nil, io.EOF
	}
	next := a.asks[0]
	a.asks = a.asks[1:]
	return []byte(next), nil
}

func (a *asker) Send(ctx context.Context, msg []byte) error {
	a.mu.Lock()
	a.waiting++
	a.most = max(a.most, a.waiting)
	a.mu.Unlock()
	a.got <- string(msg)
	select {
	case <-a.takes:
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting--
	return nil
}

func (a *asker) Close() error { return nil }

// read reads to the end, and returns how many messages came to the SDK.
func (a *asker) read(t *testing.T) (through int) {
	t.Helper()
	conn, err := (&rpc.Transport{Open: func(context.Context) (rpc.Wire, error) { return a, nil }}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for {
		if _, err := conn.Read(t.Context()); errors.Is(err, io.EOF) {
			return through
		} else if err != nil {
			t.Fatal(err)
		}
		through++
	}
}

// TestReplies: a server's questions are answered, and never come to the SDK.
func TestReplies(t *testing.T) {
	open := make(chan struct{})
	close(open)
	a := &asker{takes: open, got: make(chan string, 10), asks: []string{
		`{"jsonrpc":"2.0","id":"x","method":"ping"}`, `{"jsonrpc":"2.0","id":2,"method":"roots/list"}`, `{"jsonrpc":"2.0","method":"notifications/message"}`,
	}}
	if n := a.read(t); n > 0 {
		t.Errorf("%d messages came through", n)
	}
	got := []string{<-a.got, <-a.got}
	slices.Sort(got)
	want := []string{`{"jsonrpc":"2.0","id":"x","result":{}}`, `{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"this client does not do that"}}`}
	if !slices.Equal(got, want) || len(a.got) > 0 {
		t.Errorf("got %q and %d more", got, len(a.got))
	}
}

// TestRepliesPileUp: a server that asks and asks, and takes no answer, holds few of them.
func TestRepliesPileUp(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	a := &asker{takes: never, got: make(chan string, 3000)}
	for i := range 3000 {
		a.asks = append(a.asks, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
	}
	if n := a.read(t); n > 0 {
		t.Errorf("%d messages came through", n)
	}
	for range 16 {
		<-a.got
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.most != 16 {
		t.Errorf("%d answers waited at the same time, want 16", a.most)
	}
}
