//go:build linux && !race

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// attacks are the table. The behaviour of hostile servers is in hostile_servers_test.go.
func attacks() []attack {
	long := strings.Repeat
	script := func(program string, words ...string) func(context.Context, *testing.T, string) {
		return plan(repeated(64, command("jq", "-n", program)), words...)
	}
	return []attack{
		{name: "jq with 59,000 question marks, 64 times", within: planEnd, run: script("."+long("?", 59_000), "LIMIT_EXCEEDED")},
		{name: "jq with 59,000 brackets, 64 times", within: planEnd, run: script(long("[", 29_500)+long("]", 29_500), "jq")},
		{name: "jq with 59,000 open brackets, 64 times", within: planEnd, run: script(long("[", 59_000), "jq")},
		{name: "jq with 59,000 parentheses, 64 times", within: planEnd, run: script(long("(", 29_500)+"1"+long(")", 29_500), "jq")},
		{name: "jq with interpolations", within: planEnd, run: script(`@base64 "` + long(`\(.)`, 14_000) + `"`)},
		{name: "jq with nested definitions", within: planEnd, run: script(long("def f: ", 7_000) + "1" + long("; f", 7_000))},
		{name: "awk with 15,000 divisions", within: planEnd, run: plan(repeated(64, command("awk", "BEGIN{x=1"+long("/1", 30_000)+"}")))},
		{name: "sed with 60,000 braces", within: planEnd, run: plan(repeated(64, command("sed", long("{", 60_000))), "sed")},
		{name: "grep with a pattern that multiplies", within: planEnd, run: plan(repeated(64, command("grep", "-E", "((((a{1,255}){1,255}){1,255}){1,255}){1,255}")))},
		{name: "retry_on that multiplies", within: planEnd, run: plan([]object{
			command("jq", "-n", "1"), {"type": "tool", "server": "odd", "name": "get_item", "for_each": true, "retries": 1, "retry_on": "((((a{1,100}){1,100}){1,100}){1,100}){1,100}"},
		}, "retry_on")},
		{name: "long names", within: planEnd, run: plan(repeated(64, toolStage(long("x", 50_000), long("y", 50_000), object{})), "UNKNOWN_SERVER")},
		{name: "a query of a megabyte", within: 10 * time.Second, run: list(object{"query": long("get item ", 120_000)})},
		{name: "a server name of a megabyte", within: 10 * time.Second, run: list(object{"server": long("odd", 350_000)})},

		{name: "schemas with patterns that multiply", within: 10 * time.Second, servers: attacker("patterns"), run: list(nil)},
		{name: "schemas with deep references", within: 10 * time.Second, servers: attacker("refs"), run: list(nil)},
		{name: "an enum of 40,000 arrays", within: planEnd, servers: attacker("enums"), run: plan([]object{
			command("jq", "-n", "-c", "{items: [range(20000) | [., .]]}"), toolStage("enums", "take_items", object{}),
		})},
		{name: "300 patterns for 5,000 keys", within: planEnd, servers: attacker("enums"), run: plan([]object{
			command("jq", "-n", "-c", `[range(5000) | {key: ("a" * 40 + tostring), value: 1}] | from_entries`), toolStage("enums", "take_keys", object{}),
		})},
		{name: "5,000 tools with long names", within: 10 * time.Second, servers: attacker("many"), run: list(nil)},
		{name: "a server that floods progress", within: planEnd, servers: attacker("flood"), run: plan([]object{toolStage("flood", "progress", object{})})},
		{name: "a server whose list changes all the time", within: planEnd, servers: attacker("flood"), run: plan([]object{toolStage("flood", "changes", object{})})},
		{name: "a server that floods standard error", within: planEnd, servers: attacker("flood"), run: plan([]object{toolStage("flood", "noise", object{})})},
		{name: "servers that flood lines", within: planEnd, servers: attackers("flood", floodedLines...), run: calls(itself, floodedLines...)},
		{name: "streams without end", within: planEnd, servers: hostileStreams, run: calls(onStreams, slices.Collect(maps.Keys(streams()))...)},
		{name: "capabilities that decode to far more", within: 10 * time.Second, servers: attacker("boasting"), run: plan([]object{toolStage("boasting", "blanks", object{})}, "SERVER_UNAVAILABLE")},
		{name: "a result of 20 million blocks", within: planEnd, servers: attacker("flood"), run: plan([]object{toolStage("flood", "blocks", object{})}, "LIMIT_EXCEEDED")},
		{name: "a result of 4 million members", within: planEnd, servers: attacker("flood"), run: plan([]object{toolStage("flood", "members", object{})})},
		{name: "a tool that asks for 2 million inputs", within: planEnd, servers: attacker("flood"), run: plan([]object{toolStage("flood", "asks", object{})}, "asks for input")},
		{name: "an error within an error, 4,500 times", within: planEnd, servers: attacker("flood"), run: plan([]object{toolStage("flood", "errors", object{})}, "TOOL_ERROR")},
		{name: "an error of 60 MB of addresses", within: planEnd, servers: attacker("flood"), run: plan([]object{toolStage("flood", "links", object{})}, "TOOL_ERROR")},

		{name: "a large initialize, again and again", within: time.Minute, run: largeHandshakes},
		{name: "14,000 sessions", within: time.Minute, run: manySessions},
		{name: "150 bodies that stall", within: 90 * time.Second, run: stalledBodies},
		{name: "1,000 idle connections", within: time.Minute, run: idleConnections},

		{name: "150 answers of 6 MB that nobody reads", within: time.Minute, servers: attacker("flood"), run: unreadAnswers},

		{name: "a page of 12 MB of nested tags", within: planEnd, servers: nestedTags, run: plan([]object{toolStage("web", "fetch", object{})})},
		{
			name: "64 runs that collect 60 MiB each", within: time.Minute, servers: largeResults,
			args: []string{"--limit", "runs=80"}, run: manyResults,
		},
		{
			name: "runs of one address in all slots", within: 30 * time.Second,
			args: []string{"--trusted-proxy", "127.0.0.0/8"}, run: allSlots,
		},
	}
}

// planEnd is when a hostile run has ended.
const planEnd = (planTimeout + 2) * time.Second

// client is one whose connections nobody else uses.
func client(t *testing.T) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// plan runs a pipeline as another caller. With words it wants an error that has them: then the run has the patience as more
// time, since a busy machine would make any error a TIMEOUT.
func plan(pipeline any, words ...string) func(context.Context, *testing.T, string) {
	return func(ctx context.Context, t *testing.T, url string) {
		timeout := planTimeout
		if len(words) > 0 {
			timeout += int(attackPatience.Seconds())
		}
		session := connect(t, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: client(t)}, versions[0], nil)
		defer session.Close()
		res, err := session.CallTool(ctx, &mcp.CallToolParams{
			Name: "execute_pipeline", Arguments: object{"pipeline": pipeline, "timeout": timeout},
		})
		if err != nil {
			t.Errorf("calling execute_pipeline: %v", err)
			return
		}
		for _, word := range words {
			if text := textOf(res); !res.IsError || !strings.Contains(text, word) {
				t.Errorf("the reply does not say %q: %s", word, clip(text))
			}
		}
	}
}

// list asks for the list as another caller.
func list(args object) func(context.Context, *testing.T, string) {
	return func(ctx context.Context, t *testing.T, url string) {
		session := connect(t, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: client(t)}, versions[0], nil)
		defer session.Close()
		if args == nil {
			args = object{}
		}
		if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "list_all_tools", Arguments: args}); err != nil {
			t.Errorf("calling list_all_tools: %v", err)
		}
	}
}

// attacker attaches a server of hostile_servers_test.go.
func attacker(name string) func(t *testing.T) object {
	return func(t *testing.T) object { return object{name: child(t, name)} }
}

// attackers attach a server of hostile_streams_test.go once for each of its tools that are named, by that name.
func attackers(server string, tools ...string) func(t *testing.T) object {
	return func(t *testing.T) object {
		servers := object{}
		for _, tool := range tools {
			servers[tool] = child(t, server)
		}
		return servers
	}
}

// floodedLines are the tools of flood that write what is no word about a call.
var floodedLines = []string{"blanks", "spaces", "junk", "pings", "answers", "batches", "endless"}

func itself(tool string) string { return tool }
func onStreams(string) string   { return "streams" }

// calls calls tools at the same time, each on the server that serverOf names.
func calls(serverOf func(tool string) string, tools ...string) func(context.Context, *testing.T, string) {
	return func(ctx context.Context, t *testing.T, url string) {
		var callers sync.WaitGroup
		for _, tool := range tools {
			callers.Go(func() { plan([]object{toolStage(serverOf(tool), tool, object{})})(ctx, t, url) })
		}
		callers.Wait()
	}
}

// post sends a message and returns the status of the answer, 0 if there is none.
func post(ctx context.Context, c *http.Client, url string, body io.Reader) int {
	status, _ := inSession(ctx, c, http.MethodPost, url, "", body)
	return status
}

// inSession makes a request in a session, "" for none, and returns the session of the answer.
func inSession(ctx context.Context, c *http.Client, method, url, in string, body io.Reader) (status int, session string) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if in != "" {
		req.Header.Set("Mcp-Session-Id", in)
	}
	res, err := c.Do(req)
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body) // so that the connection can be used again
	return res.StatusCode, res.Header.Get("Mcp-Session-Id")
}

func handshake(name string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"` + name + `","version":"1"}}}`
}

// largeHandshakes opens sessions with handshakes of 7.5 MiB.
func largeHandshakes(ctx context.Context, t *testing.T, url string) {
	c, name := client(t), strings.Repeat("x", 15<<19)
	for range 40 {
		if got := post(ctx, c, url, strings.NewReader(handshake(name))); got != http.StatusRequestEntityTooLarge {
			t.Errorf("a handshake of 7.5 MiB: status %d, want 413", got)
			return
		}
	}
}

// manySessions opens more sessions than there may be, and ends them: idle ones would keep the next caller out for ten
// minutes.
func manySessions(ctx context.Context, t *testing.T, url string) {
	const sessions = 14_000
	c := client(t)
	var next, refused atomic.Int64
	var accepted sync.Map
	inParallel := func(do func()) {
		var callers sync.WaitGroup
		for range 32 {
			callers.Go(do)
		}
		callers.Wait()
	}
	inParallel(func() {
		for next.Add(1) <= sessions && ctx.Err() == nil {
			switch status, id := inSession(ctx, c, http.MethodPost, url, "", strings.NewReader(handshake("many"))); status {
			case http.StatusOK:
				accepted.Store(id, true)
			case http.StatusServiceUnavailable:
				refused.Add(1)
			}
		}
	})
	ids := slices.Collect(func(yield func(string) bool) {
		accepted.Range(func(id, _ any) bool { return yield(id.(string)) })
	})
	if r := refused.Load(); len(ids) > 10_000 || r < sessions-10_000-100 {
		t.Errorf("%d sessions were accepted and %d refused, want at most 10,000 and the rest", len(ids), r)
	}
	next.Store(0)
	inParallel(func() {
		for i := next.Add(1) - 1; i < int64(len(ids)); i = next.Add(1) - 1 {
			inSession(ctx, c, http.MethodDelete, url, ids[i], nil)
		}
	})
}

// stalledBodies sends calls of 12 MiB that stop before their end, until the gateway ends them.
func stalledBodies(ctx context.Context, t *testing.T, url string) {
	host := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")
	head := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_pipeline","arguments":{"pipeline":"`
	body := head + strings.Repeat("x", 12<<20)
	var callers sync.WaitGroup
	for range 150 {
		callers.Go(func() {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
			if err != nil {
				t.Errorf("connecting: %v", err)
				return
			}
			defer conn.Close()
			deadline, _ := ctx.Deadline()
			if err := conn.SetDeadline(deadline); err != nil {
				t.Error(err)
			}
			fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n", host, len(body)+10)
			_, _ = io.WriteString(conn, body) // refused bodies end early
			if _, err := io.Copy(io.Discard, conn); err != nil && errors.Is(err, context.DeadlineExceeded) {
				t.Error("a body that stalls is never ended")
			}
		})
	}
	callers.Wait()
}

// unreadAnswers makes calls whose answers are long, and reads none of them.
func unreadAnswers(ctx context.Context, t *testing.T, url string) {
	host := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")
	const meta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":` + meta + `,"name":"execute_pipeline",` +
		`"arguments":{"max_output":1000000,"pipeline":[{"type":"tool","server":"flood","name":"controls"}]}}}`
	for range 150 {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
		if err != nil {
			t.Errorf("connecting: %v", err)
			return
		}
		defer conn.Close()
		if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
			"Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: execute_pipeline\r\nContent-Length: %d\r\n\r\n%s", host, len(body), body)
		if _, err := io.ReadFull(conn, make([]byte, 12)); err != nil { // the answer has begun
			t.Errorf("a long answer: %v", err)
		}
	}
}

// idleConnections opens connections that say nothing, for as long as the harmless caller needs for some calls.
func idleConnections(ctx context.Context, t *testing.T, url string) {
	host := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")
	for range 1_000 {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
		if err != nil {
			t.Errorf("connecting: %v", err)
			return
		}
		defer conn.Close()
	}
	if got := post(ctx, client(t), url, strings.NewReader(handshake("late"))); got != http.StatusOK {
		t.Errorf("beside idle connections: status %d", got)
	}
}

// nestedTags is a server that fetches, and a page for it.
func nestedTags(t *testing.T) object {
	text := strings.Repeat("<b><i><u><p>", 1<<20)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, text) // the reader may have had enough
	}))
	t.Cleanup(site.Close)
	return object{"web": object{"builtin": "fetch", "allow_private": true, "max_bytes": 16 << 20, "with": object{"url": site.URL}}}
}

// manyResults has 64 runs at once collect 60 MiB each. Each gives all of it or says that memory is short.
func manyResults(ctx context.Context, t *testing.T, url string) {
	var callers sync.WaitGroup
	var whole, short atomic.Int64
	for range 64 {
		callers.Go(func() {
			session := connect(t, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: client(t)}, versions[0], nil)
			defer session.Close()
			res, err := session.CallTool(ctx, pipelineCall([]object{
				toolStage("large", "get", object{}), command("wc", "-c"),
			}))
			if err != nil {
				t.Errorf("calling execute_pipeline: %v", err)
				return
			}
			switch text := textOf(res); {
			case !res.IsError:
				whole.Add(1)
			case strings.Contains(text, "LIMIT_EXCEEDED") && strings.Contains(text, "memory"):
				short.Add(1)
			default:
				t.Errorf("a run neither ends well nor names memory: %s", clip(text))
			}
		})
	}
	callers.Wait()
	t.Logf("%d runs ended well, %d for want of memory", whole.Load(), short.Load())
}

// allSlots has one address run more than it may in many sessions; another address has room.
func allSlots(ctx context.Context, t *testing.T, url string) {
	from := func(address string) *http.Client {
		return &http.Client{Transport: forwarded{client(t).Transport, address}}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var callers sync.WaitGroup
	for range 12 {
		session := connect(t, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: from("192.0.2.1")}, versions[0], nil)
		for range 8 {
			callers.Go(func() {
				_, _ = session.CallTool(ctx, pipelineCall([]object{command("sleep", "25")})) // it is cancelled
			})
		}
	}
	other := connect(t, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: from("192.0.2.2")}, versions[0], nil)
	res, err := other.CallTool(ctx, pipelineCall([]object{command("jq", "-n", "1")}))
	if err != nil || res.IsError {
		t.Errorf("another address has no room: %v", err)
	}
	stop()
	callers.Wait()
}

// forwarded says for whom a request is forwarded.
type forwarded struct {
	next    http.RoundTripper
	address string
}

func (f forwarded) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("X-Forwarded-For", f.address)
	return f.next.RoundTrip(req)
}
