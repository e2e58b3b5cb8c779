package upstream_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestTap: a watcher sees the messages of both directions, without secrets; without one none are made.
func TestTap(t *testing.T) {
	u := mcptest.New(mcptest.Tool{Name: "echo", Text: "the answer is s3cretword"})
	e := upstream.Endpoint{URL: u.HTTP(t, nil).URL, Name: "one"}
	pool := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{{
		Name: "one", Dial: upstream.HTTP(e), Secrets: []string{"s3cretword"},
	}}}})
	call := func() {
		if _, err := pool.CallTool(t.Context(), stages.Call{Server: "one", Name: "echo", Args: json.RawMessage(`{"a":1}`)}); err != nil {
			t.Fatal(err)
		}
	}
	call()
	var mu sync.Mutex
	var seen []upstream.Message
	pool.Tap(func(m upstream.Message) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, m)
	})
	call()
	pool.Tap(nil)
	mu.Lock()
	all := len(seen)
	out, in := "", ""
	for _, m := range seen {
		if m.Out {
			out += m.Text
		} else {
			in += m.Text
		}
	}
	mu.Unlock()
	if !strings.Contains(out, `"tools/call"`) || !strings.Contains(in, "the answer is") || strings.Contains(in, "s3cretword") {
		t.Errorf("sent %s, received %s", out, in)
	}
	call()
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != all {
		t.Error("messages were shown though nobody looks")
	}
}

// TestRestart: a restarted server has a new session, and its calls go on.
func TestRestart(t *testing.T) {
	u := mcptest.New(mcptest.Tool{Name: "echo", Text: "x"})
	pool := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: "one", Dial: u.Dial}}}})
	call := func() {
		if _, err := pool.CallTool(t.Context(), stages.Call{Server: "one", Name: "echo"}); err != nil {
			t.Fatal(err)
		}
	}
	call()
	before := pool.Looks(t.Context())[0]
	if before.Status != upstream.StatusReady || before.Tools != 1 || before.Started.IsZero() {
		t.Fatalf("before: %+v", before)
	}
	if err := pool.Restart(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	call()
	if after := pool.Looks(t.Context())[0]; !after.Started.After(before.Started) {
		t.Errorf("the session is of %v, that before of %v", after.Started, before.Started)
	}
	if err := pool.Restart(t.Context(), "none"); err == nil {
		t.Error("a server that is not there was restarted")
	}
}
