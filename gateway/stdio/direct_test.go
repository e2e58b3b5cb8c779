package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
)

// counting counts the calls that are answered beside the SDK.
type counting struct {
	*gateway.Gateway
	calls atomic.Int64
}

func (c *counting) Direct(ctx context.Context, ss *mcp.ServerSession, message []byte) (*gateway.Call, *jsonrpc.Error) {
	call, fault := c.Gateway.Direct(ctx, ss, message)
	if call != nil {
		c.calls.Add(1)
	}
	return call, fault
}

// A conversation is with a gateway on standard input and output. Within it, time stands still.
type conversation struct {
	t      *testing.T
	feed   *io.PipeWriter
	out    *bufio.Scanner
	hear   *io.PipeReader
	direct *counting // nil: everything goes to the SDK
	shop   *mcptest.Upstream
	served chan error
	end    context.CancelFunc // as SIGTERM does
}

func converse(t *testing.T, direct bool, change ...func(*Options)) *conversation {
	u := mcptest.New(mcptest.Tool{Name: "quick", ReadOnly: true, Text: "here"}, mcptest.Tool{Name: "slow", ReadOnly: true, Latency: time.Hour, Text: "late"})
	g := gateway.New(gateway.Options{
		Upstream: mcptest.Pool(t, map[string]*mcptest.Upstream{"shop": u}), Version: "test", Limits: stages.Limits{Run: 2 * time.Hour, Call: 2 * time.Hour},
	})
	in, feed := io.Pipe()
	hear, out := io.Pipe()
	c := &conversation{t: t, shop: u, feed: feed, hear: hear, out: bufio.NewScanner(hear), served: make(chan error, 1)}
	o := Options{Server: g.Server(), In: in, Out: out}
	if direct {
		c.direct = &counting{Gateway: g}
		o.Direct = c.direct.Direct
	}
	for _, f := range change {
		f(&o)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.end = cancel
	go func() {
		c.served <- Serve(ctx, o)
		out.Close()
	}()
	t.Cleanup(func() {
		feed.Close()
		hear.Close()
		cancel()
		g.Close(ctx)
	})
	return c
}

func (c *conversation) say(lines ...string) {
	for _, line := range lines {
		if _, err := io.WriteString(c.feed, strings.TrimSpace(line)+"\n"); err != nil {
			c.t.Fatal(err)
		}
	}
}

// answer returns the next answer.
func (c *conversation) answer() (m map[string]any) {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatalf("there is no answer: %v", c.out.Err())
	}
	if err := json.Unmarshal(c.out.Bytes(), &m); err != nil {
		c.t.Fatalf("%v: %q", err, c.out.Bytes())
	}
	return m
}

// shakeHands returns when calls go beside the SDK.
func (c *conversation) shakeHands() {
	c.say(handshake)
	c.answer()
}

// A writer is a function as an [io.Writer].
type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// A call that comes as soon as the answer to the handshake can be read goes beside the SDK, and its answer comes behind it.
func TestStdioDirectFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *conversation
		ready := make(chan struct{})
		c = converse(t, true, func(o *Options) {
			out, first := o.Out, true
			o.Out = writer(func(p []byte) (int, error) {
				if first {
					<-ready
					first = false
					c.say(pipelineCall("7", "quick"), "") // the empty line is read when the call is taken
				}
				return out.Write(p)
			})
		})
		close(ready)
		c.say(handshake)
		for _, want := range []any{1.0, 7.0} {
			if got := c.answer()["id"]; got != want {
				t.Errorf("the answer is to %v, want %v", got, want)
			}
		}
		if n := c.direct.calls.Load(); n != 1 {
			t.Errorf("%d calls went beside the SDK", n)
		}
	})
}

// TestUnread: the gateway stops reading requests of a client that reads no answers, and goes on when it does.
func TestUnread(t *testing.T) {
	c := converse(t, true)
	c.shakeHands()
	const all = maxUnanswered + 100
	var said atomic.Int64
	go func() {
		for i := range all {
			_, _ = io.WriteString(c.feed, pipelineCall(fmt.Sprint(i), "nothing")+"\n")
			said.Add(1)
		}
	}()
	for end := time.Now().Add(time.Minute); said.Load() < maxUnanswered && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
	}
	time.Sleep(200 * time.Millisecond) // in which it could read more
	if n := said.Load(); n < maxUnanswered || n > maxUnanswered+1 {
		t.Errorf("%d of %d requests are read", n, all)
	}
	for range all {
		c.answer()
	}
}

// pipelineCall calls a tool of the shop.
func pipelineCall(id, tool string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"execute_pipeline","arguments":{"timeout":7200,"pipeline":[{"type":"tool","server":"shop","name":"` + tool + `"}]}}}`
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},`

// An answer beside the SDK is the same as the SDK's.
func TestStdioDirectSame(t *testing.T) {
	call := pipelineCall("7", "quick")
	modern := strings.Replace(call, `"params":{`, `"params":{`+modernMeta, 1)
	progress := strings.Replace(call, `"params":{`, `"params":{"_meta":{"progressToken":1},`, 1)
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	discover := `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + strings.TrimSuffix(modernMeta, ",") + `}}`
	late := strings.Replace(handshake, "2025-06-18", "2026-07-28", 1)
	for name, tt := range map[string]struct {
		first, then string
		direct      int64
	}{
		"a session":                    {handshake, call, 1},
		"a session of the future":      {late, call, 1},
		"id as text":                   {handshake, pipelineCall(`"a"`, "quick"), 1},
		"white space":                  {handshake, " \t" + strings.Replace(call, ":", " : ", 3) + " \r", 1},
		"without sessions":             {discover, modern, 1},
		"without sessions, at once":    {modern, modern, 1},
		"without sessions, then with":  {modern, call, 1},
		"with sessions, then without":  {handshake, modern, 1},
		"without a handshake":          {ping, call, 0},
		"one shot":                     {call, strings.Replace(call, "7", "8", 1), 1},
		"without sessions, malformed":  {discover, strings.Replace(modern, "clientCapabilities", "x", 1), 0},
		"progress":                     {handshake, strings.Replace(progress, "quick", "nothing", 1), 1},
		"an unknown tool":              {handshake, strings.Replace(call, "execute_pipeline", "x", 1), 1},
		"id that is no number":         {handshake, pipelineCall("7.5", "quick"), 0},
		"a batch":                      {handshake, "[" + call + "]", 0},
		"a tool that is not there":     {handshake, pipelineCall("7", "x"), 1},
		"mistakes":                     {handshake, strings.Replace(call, "7200", "-1", 1), 1},
		"another method":               {handshake, `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, 0},
		"a method that there is not":   {handshake, `{"jsonrpc":"2.0","id":7,"method":"tools/cell"}`, 0},
		"a handshake that is repeated": {handshake, handshake, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got [2]map[string]any
			for i, direct := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					c := converse(t, direct)
					c.say(tt.first)
					c.answer()
					synctest.Wait() // until the first message is dealt with
					c.say(tt.then)
					got[i] = c.answer()
					if result, _ := got[i]["result"].(map[string]any); result != nil && result["_meta"] != nil {
						delete(result["_meta"].(map[string]any), "mcsh/report")
					}
					if direct && c.direct.calls.Load() != tt.direct {
						t.Errorf("%d calls went beside the SDK, want %d", c.direct.calls.Load(), tt.direct)
					}
				})
			}
			if diff := cmp.Diff(got[0], got[1]); diff != "" {
				t.Errorf("the SDK and we differ (-SDK +we):\n%s", diff)
			}
		})
	}
}

// Calls that come before the handshake is answered do not overtake it.
func TestStdioDirectOrder(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			c := converse(t, true)
			go func() {
				_, _ = io.WriteString(c.feed, handshake+pipelineCall("7", "quick")+"\n"+pipelineCall("8", "quick")+"\n")
			}()
			if got := c.answer()["id"]; got != 1.0 {
				t.Errorf("the first answer is to %v", got)
			}
			c.answer()
			c.answer()
		})
	}
}

// A call is cancelled by its own id only, beside the SDK and by it, and gets no answer.
func TestStdioDirectCancel(t *testing.T) {
	for _, direct := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := converse(t, direct)
			if direct {
				c.shakeHands()
			} else {
				c.say(handshake)
				c.answer()
			}
			c.say(pipelineCall("3", "slow"), pipelineCall(`"3"`, "slow"))
			synctest.Wait()
			running := c.shop.Running()
			c.say(strings.Replace(cancel, "3", "4", 1), strings.Replace(cancel, "3", "[3]", 1), cancel)
			synctest.Wait()
			if n := c.shop.Running(); running != 2 || n != 1 {
				t.Errorf("direct %t: %d calls run of %d, want 1 of 2", direct, n, running)
			}
			c.say(pipelineCall("5", "quick"))
			if got := c.answer(); got["id"] != 5.0 {
				t.Errorf("direct %t: the call that was cancelled is answered: %v", direct, got)
			}
			c.say(pipelineCall("3", "quick"))
			if got := c.answer(); got["id"] != 3.0 || !strings.Contains(fmt.Sprint(got), "here") {
				t.Errorf("direct %t: its id again: %v", direct, got)
			}
			if direct && c.direct.calls.Load() != 4 {
				t.Errorf("%d calls went beside the SDK", c.direct.calls.Load())
			}
		})
	}
}

// Progress comes before the answer.
func TestStdioDirectProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := converse(t, true)
		c.shakeHands()
		call := strings.Replace(pipelineCall("3", "slow"), `"params":{`, `"params":{"_meta":{"progressToken":1},`, 1)
		c.say(strings.Replace(call, "7200", "7", 1))
		for _, want := range []any{nil, 3.0} { // after 5 s of 7
			if got := c.answer(); got["id"] != want {
				t.Errorf("got %v", got)
			}
		}
	})
}

// The id of a call is not given to another before it is answered.
func TestStdioDirectDuplicate(t *testing.T) {
	for _, direct := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := converse(t, direct)
			c.shakeHands()
			c.say(pipelineCall("3", "slow"), pipelineCall("3", "quick"))
			if got := c.answer(); got["id"] != nil || !strings.Contains(fmt.Sprint(got), "duplicate in-flight request ID 3") {
				t.Errorf("direct %t: got %v", direct, got)
			}
			c.say(cancel)
			synctest.Wait()
			c.say(pipelineCall("3", "quick"))
			if got := c.answer(); got["id"] != 3.0 || !strings.Contains(fmt.Sprint(got), "here") {
				t.Errorf("direct %t: got %v", direct, got)
			}
			c.feed.Close()
			if err := <-c.served; err != nil {
				t.Errorf("direct %t: %v", direct, err)
			}
		})
	}
}

// Requests from before the end of the input are answered at once, or never. A client that does not wait may have closed its end
// by then, so nothing is written to it; one that piped its calls in waits for every answer.
func TestStdioDirectEnd(t *testing.T) {
	for _, tt := range []struct {
		tool  string
		piped bool
		want  string
	}{{"quick", false, "here"}, {"slow", false, ""}, {"quick", true, "here"}, {"slow", true, "late"}} {
		synctest.Test(t, func(t *testing.T) {
			c := converse(t, true)
			if !tt.piped {
				c.say(strings.Split(handshake, "\n")[0])
				c.answer()
			}
			c.shakeHands()
			c.say(pipelineCall("3", tt.tool))
			c.feed.Close()
			if c.out.Scan() != (tt.want != "") || !strings.Contains(c.out.Text(), tt.want) {
				t.Errorf("%+v: got %q", tt, c.out.Text())
			}
			if err := <-c.served; err != nil {
				t.Error(err)
			}
		})
	}
}

// The end of the gateway does not wait for a client that does not read.
func TestStdioDirectUnread(t *testing.T) {
	c := converse(t, true)
	c.shakeHands()
	c.say(pipelineCall("1", "slow"))
	for id := range 20 {
		c.say(pipelineCall(fmt.Sprint(id+2), "quick"))
	}
	for c.direct.calls.Load() < 20 { // the last line is read, and may not be taken yet
		time.Sleep(time.Millisecond)
	}
	c.end()
	select {
	case err := <-c.served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it does not end")
	}
}

// Requests after all calls were cancelled are answered too, until the session ends.
func TestStdioDirectAfterLife(t *testing.T) {
	for _, direct := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			asked := make(chan struct{})
			defer close(asked)
			c := converse(t, direct, func(o *Options) { o.Finish = func(context.Context) error { <-asked; return nil } })
			c.say(handshake)
			c.answer()
			synctest.Wait()
			c.end()
			synctest.Wait()
			for id := 3.0; id < 6; id++ {
				c.say(pipelineCall(fmt.Sprint(id), "quick"))
				if got := c.answer(); got["id"] != id {
					t.Errorf("direct %t: got %v", direct, got)
				}
			}
			if direct && c.direct.calls.Load() != 3 {
				t.Errorf("%d calls went beside the SDK", c.direct.calls.Load())
			}
		})
	}
}

// An answer that cannot be written ends the session, with the reason.
func TestStdioDirectLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := converse(t, true)
		c.shakeHands()
		full := errors.New("the disk is full")
		c.hear.CloseWithError(full)
		c.say(pipelineCall("3", "quick"))
		if err := <-c.served; !errors.Is(err, full) {
			t.Errorf("got %v", err)
		}
	})
}

// Answers that are written at the same time stay whole.
func TestStdioDirectWholeLines(t *testing.T) {
	const calls = 60
	g := gateway.New(gateway.Options{})
	direct := &counting{Gateway: g}
	var input bytes.Buffer
	want := map[string]bool{}
	for i := range calls {
		input.WriteString(pipelineCall(fmt.Sprint(i+10), "x") + "\nbad\n")
		want[fmt.Sprintf("%d 0", i+10)] = true
	}
	in, feed := io.Pipe()
	out := &bytewise{}
	go func() {
		_, _ = io.WriteString(feed, handshake)
		for answered := false; !answered; { // after that, calls go beside the SDK
			out.mu.Lock()
			answered = bytes.HasSuffix(out.b, []byte("\n"))
			out.mu.Unlock()
		}
		_, _ = input.WriteTo(feed)
		feed.Close()
	}()
	if err := Serve(t.Context(), Options{Server: g.Server(), In: in, Out: out, Direct: direct.Direct}); err != nil {
		t.Error(err)
	}
	for _, got := range answers(t, out.b) {
		delete(want, got)
	}
	if len(want) > 0 || direct.calls.Load() < calls/2 {
		t.Errorf("no answer to %v; %d calls went beside the SDK", want, direct.calls.Load())
	}
}
