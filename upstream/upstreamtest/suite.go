// Package upstreamtest is the contract of every Dial of [upstream.Server], whatever it reaches.
package upstreamtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// patience is how long a test waits for what should be there at once.
const patience = time.Minute

// bigSize is over the cap of 16 MiB that the SDK's own transports have.
const bigSize = 17 << 20

// NewServer makes the server of the suite. The Dial under test must reach it.
func NewServer() *mcptest.Upstream {
	return mcptest.New(
		mcptest.Tool{
			Name: "echo", ReadOnly: true, Schema: `{"type":"object","properties":{"value":{}},"required":["value"]}`,
			Do: func(args map[string]any) (string, error) { return fmt.Sprint(args["value"]), nil },
		},
		mcptest.Tool{Name: "exact", ReadOnly: true, Raw: func(_ context.Context, args json.RawMessage) (string, error) {
			return `{"content":[],"structuredContent":{"z":12345678901234567890,"a":1.10,"args":` + string(args) + `}}`, nil
		}},
		mcptest.Tool{Name: "fail", Do: func(map[string]any) (string, error) { return "", errors.New("disk on fire") }},
		mcptest.Tool{Name: "big", ReadOnly: true, Raw: func(_ context.Context, args json.RawMessage) (string, error) {
			var size struct{ Bytes int }
			err := json.Unmarshal(args, &size)
			return `{"content":[{"type":"text","text":"` + strings.Repeat("x", size.Bytes) + `"}]}`, err
		}},
		mcptest.Tool{Name: "slow", ReadOnly: true, Latency: 10 * time.Minute, Text: "late"},
		mcptest.Tool{Name: "nap", ReadOnly: true, Latency: time.Second, Text: "rested"},
		mcptest.Tool{Name: "steps", ReadOnly: true, Says: []string{"one", "t\x1b[2Jw\u202eo\n", strings.Repeat("é", 300)}, Text: "done"},
		mcptest.Tool{Name: "panic", Raw: func(context.Context, json.RawMessage) (string, error) { panic("oh dear") }},
		mcptest.Tool{Name: "die", Raw: func(context.Context, json.RawMessage) (string, error) { os.Exit(3); return "", nil }},
	)
}

// A Subject is a Dial under test.
type Subject struct {
	// Server reaches a server made by [NewServer].
	Server upstream.Server

	// Kill ends the session from the server's side, so that a new one is needed. Nil: that cannot be done.
	Kill func(t *testing.T, p *upstream.Pool)

	// Deaf is set where nothing but the answer comes: over HTTP as one JSON message.
	Deaf bool

	// Small leaves out the result of 17 MiB, as most subjects do by day.
	Small bool
}

// Run runs the suite.
func Run(t *testing.T, make func(t *testing.T) Subject) {
	for name, test := range map[string]func(*testing.T, Subject, *upstream.Pool){
		"list": testList, "call": testCall, "exact": testExact, "fail": testFail, "concurrent": testConcurrent,
		"cancel": testCancel, "timeout": testTimeout, "big": testBig, "too big": testTooBig, "panic": testPanic,
		"progress": testProgress, "restart": testRestart, "close": testClose,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // some wait
			s := make(t)
			s.Server.Name = "subject"
			p := upstream.NewPool(upstream.Options{Sources: []upstream.Source{upstream.Static{s.Server}}})
			t.Cleanup(func() { _ = p.Close() })
			test(t, s, p)
		})
	}
}

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func want(t *testing.T, p *upstream.Pool, tool, args, data string) {
	t.Helper()
	res, err := p.CallTool(limited(t), stages.Call{Server: "subject", Name: tool, Args: json.RawMessage(args)})
	if err != nil || string(res.Data) != data {
		t.Errorf("%s(%s): got %.200q, %v; want %q", tool, args, res.Data, err, data)
	}
}

func wantCode(t *testing.T, err error, code stages.Code, words string) {
	t.Helper()
	var e *stages.Error
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Msg, words) {
		t.Errorf("got %v, want %s with %q", err, code, words)
	}
}

func testList(t *testing.T, _ Subject, p *upstream.Pool) {
	l := p.Catalog(limited(t))
	if len(l) != 1 || l[0].Status != upstream.StatusReady || l[0].Err != nil {
		t.Fatalf("got %+v", l)
	}
	var names []string
	for _, tool := range l[0].Tools {
		names = append(names, tool.Tool.Signature)
	}
	if got, want := strings.Join(names, " "), "echo(value: any)"; !strings.Contains(got, want) || len(names) != 9 {
		t.Errorf("got %s, want %s among 9", got, want)
	}
}

func testCall(t *testing.T, _ Subject, p *upstream.Pool) {
	want(t, p, "echo", `{"value":"héllo \u0000 <&> 😀"}`, "héllo \x00 <&> 😀")
	want(t, p, "echo", `{"value":9007199254740993}`, "9007199254740993")
	want(t, p, "echo", `{"value":""}`, "")
}

func testExact(t *testing.T, _ Subject, p *upstream.Pool) {
	want(t, p, "exact", `{"n":-98765432109876543210.000}`,
		`{"z":12345678901234567890,"a":1.10,"args":{"n":-98765432109876543210.000}}`)
}

func testFail(t *testing.T, _ Subject, p *upstream.Pool) {
	_, err := p.CallTool(limited(t), stages.Call{Server: "subject", Name: "fail"})
	wantCode(t, err, stages.ToolError, "disk on fire")
	if e := new(stages.Error); errors.As(err, &e) && !e.Answered {
		t.Error("it is not known that the tool itself said so")
	}
	_, err = p.CallTool(limited(t), stages.Call{Server: "subject", Name: "fial"})
	wantCode(t, err, stages.UnknownTool, `no tool "fial"`)
}

func testConcurrent(t *testing.T, _ Subject, p *upstream.Pool) {
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range 100 {
		wg.Go(func() {
			want(t, p, "nap", "", "rested")
			want(t, p, "echo", fmt.Sprintf(`{"value":%d}`, i), fmt.Sprintf("%d", i))
		})
	}
	wg.Wait()
	if took := time.Since(begin); took > 50*time.Second {
		t.Errorf("100 calls of a second at the same time took %v", took)
	}
}

// testProgress: a caller that asks hears what the tool says of its progress, in clean words, and only of its own call.
func testProgress(t *testing.T, s Subject, p *upstream.Pool) {
	if s.Deaf {
		t.Skip("no message comes before the answer")
	}
	var mu sync.Mutex
	heard := map[int][]stages.ToolProgress{}
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			_, err := p.CallTool(limited(t), stages.Call{Server: "subject", Name: "steps", Progress: func(said stages.ToolProgress) {
				mu.Lock()
				defer mu.Unlock()
				heard[i] = append(heard[i], said)
			}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	want(t, p, "steps", "", "done")
	mu.Lock()
	defer mu.Unlock()
	told := []stages.ToolProgress{{Done: 1, Total: 3, Message: "one"}, {Done: 2, Total: 3, Message: "t [2Jw o"}, {Done: 3, Total: 3, Message: strings.Repeat("é", 199) + "…"}}
	if diff := cmp.Diff(map[int][]stages.ToolProgress{0: told, 1: told, 2: told}, heard); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func testCancel(t *testing.T, _ Subject, p *upstream.Pool) {
	want(t, p, "echo", `{"value":1}`, "1")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := p.CallTool(ctx, stages.Call{Server: "subject", Name: "slow"})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	want(t, p, "echo", `{"value":2}`, "2")
}

func testTimeout(t *testing.T, s Subject, _ *upstream.Pool) {
	s.Server.Timeout = 1500 * time.Millisecond
	p := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{s.Server}}})
	_, err := p.CallTool(limited(t), stages.Call{Server: "subject", Name: "slow"})
	wantCode(t, err, stages.Timeout, "within 1.5s")
	for end := time.Now().Add(patience); ; { // on a slow machine such a call may also take longer than its server has
		res, err := p.CallTool(limited(t), stages.Call{Server: "subject", Name: "echo", Args: json.RawMessage(`{"value":2}`)})
		if e := new(stages.Error); errors.As(err, &e) && e.Code == stages.Timeout && time.Now().Before(end) {
			continue
		}
		if err != nil || string(res.Data) != "2" {
			t.Errorf("afterwards: got %.200q, %v", res.Data, err)
		}
		return
	}
}

func testBig(t *testing.T, s Subject, p *upstream.Pool) {
	if s.Small || testing.Short() {
		t.Skip("tested with another subject by day, and not in short mode")
	}
	res, err := p.CallTool(limited(t), stages.Call{Server: "subject", Name: "big", Args: fmt.Appendf(nil, `{"bytes":%d}`, bigSize)})
	if err != nil || len(res.Data) != bigSize || strings.Trim(string(res.Data), "x") != "" {
		t.Errorf("got %d bytes, %v", len(res.Data), err)
	}
	want(t, p, "echo", `{"value":2}`, "2")
}

func testTooBig(t *testing.T, s Subject, _ *upstream.Pool) {
	p := mcptest.NewPool(t, upstream.Options{ResultMax: 1 << 20, Sources: []upstream.Source{upstream.Static{s.Server}}})
	_, err := p.CallTool(limited(t), stages.Call{Server: "subject", Name: "big", Args: json.RawMessage(`{"bytes":2000000}`)})
	wantCode(t, err, stages.LimitExceeded, "1048576")
	want(t, p, "echo", `{"value":2}`, "2")
}

func testPanic(t *testing.T, _ Subject, p *upstream.Pool) {
	_, err := p.CallTool(limited(t), stages.Call{Server: "subject", Name: "panic"})
	wantCode(t, err, stages.ToolError, "panicked")
	want(t, p, "echo", `{"value":2}`, "2")
}

func testRestart(t *testing.T, s Subject, p *upstream.Pool) {
	want(t, p, "echo", `{"value":1}`, "1")
	if s.Kill == nil {
		t.Skip("the server cannot be ended from its own side")
	}
	for i := range 2 {
		s.Kill(t, p)
		value := fmt.Sprint(i)
		want(t, p, "echo", `{"value":`+value+`}`, value)
	}
}

func testClose(t *testing.T, s Subject, p *upstream.Pool) {
	want(t, p, "echo", `{"value":1}`, "1")
	failed := make(chan error, 1)
	started := make(chan struct{})
	go func() {
		close(started)
		_, err := p.CallTool(t.Context(), stages.Call{Server: "subject", Name: "slow"})
		failed <- err
	}()
	<-started
	begin := time.Now()
	_ = p.Close()
	_ = p.Close()
	if err := <-failed; err == nil {
		t.Error("a call outlived the pool")
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("closing took %v", took)
	}
	_, err := p.CallTool(limited(t), stages.Call{Server: "subject", Name: "echo", Args: json.RawMessage(`{"value":1}`)})
	wantCode(t, err, stages.Cancelled, "closing")
}
