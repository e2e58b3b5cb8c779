package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

var updateChaos = flag.Bool("update-chaos", false, "rewrite what the faults of servers are said to be")

// httpFaults are the faults of servers over HTTP, in what they answer to a call: some megabytes, which the processes of servers do without.
func httpFaults() map[string]func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
	return map[string]func(w http.ResponseWriter, r *http.Request, id json.RawMessage){
		"http 400":                   status(400, "bad request"),
		"http 400 in JSON-RPC":       status(400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}`),
		"http 401":                   status(401, `{"error":"invalid_token","message":"the token has expired"}`),
		"http 403":                   status(403, "Access is only allowed at localhost:8931"),
		"http 404":                   status(404, "<html>nothing here</html>"),
		"http 413":                   status(413, ""),
		"http 429":                   status(429, "slow down", "Retry-After", "3"),
		"http 500":                   status(500, `{"error":{"message":"boom"}}`),
		"http 502":                   status(502, "<html>bad gateway</html>"),
		"http 503":                   status(503, ""),
		"http 503 with a time":       status(503, "maintenance", "Retry-After", "7"),
		"http 504":                   status(504, ""),
		"http 202":                   status(202, ""),
		"http redirects elsewhere":   status(307, "", "Location", "http://elsewhere.invalid/mcp"),
		"http redirects by GET":      status(302, "", "Location", "/other"),
		"http closes":                func(http.ResponseWriter, *http.Request, json.RawMessage) { panic(http.ErrAbortHandler) },
		"http hangs":                 func(_ http.ResponseWriter, r *http.Request, _ json.RawMessage) { <-r.Context().Done() },
		"http hangs in the answer":   body("application/json", `{"jsonrpc":"2.0",`, true),
		"http hangs in the stream":   body("text/event-stream", "event: message\ndata: {\"jsonrpc\"", true),
		"http page":                  body("text/html", "<html>hello</html>", false),
		"http no JSON":               body("application/json", "hello", false),
		"http empty":                 body("application/json", "", false),
		"http another id":            body("application/json", `{"jsonrpc":"2.0","id":5,"result":{}}`, false),
		"http cut":                   body("application/json", `{"jsonrpc":"2.0","id":ID,"result":{"content"`, false),
		"http stream cut":            body("text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":ID", false),
		"http stream without answer": body("text/event-stream", ": nothing\n\n", false),
		"http stream of garbage":     body("text/event-stream", "data: hello\n\n", false),
		"http answers nothing":       body("application/json", `{"jsonrpc":"2.0","id":ID}`, false),
		"http streams nothing":       body("text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":ID}\n\n", true),
		"http answers no error":      body("application/json", `{"jsonrpc":"2.0","id":ID,"error":null}`, false),
		"http too large":             body("application/json", `{"jsonrpc":"2.0","id":ID,"result":{"a":"`+strings.Repeat("x", 3<<20)+`"}}`, false),
		"http stream too large":      body("text/event-stream", `data: {"jsonrpc":"2.0","id":ID,"result":{"a":"`+strings.Repeat("x", 3<<20)+"\"}}\n\n", false),
		"http notifications first": body("text/event-stream", strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n", 2000)+
			`data: {"jsonrpc":"2.0","id":ID,"result":`+legacyAnswers["tools/call"]+"}\n\n", false),
		"http protocol error": body("application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"fetch failed"}}`, false),
		"http isError":        body("application/json", `{"jsonrpc":"2.0","id":ID,"result":{"isError":true,"content":[]}}`, false),
	}
}

// status answers with a status, a body and headers.
func status(code int, text string, headers ...string) func(http.ResponseWriter, *http.Request, json.RawMessage) {
	return func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		io.WriteString(w, text)
	}
}

// body answers with a body, and may never end it.
func body(media, text string, hang bool) func(http.ResponseWriter, *http.Request, json.RawMessage) {
	return func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
		w.Header().Set("Content-Type", media)
		io.WriteString(w, strings.ReplaceAll(text, "ID", string(id)))
		if hang {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}
}

// A patient is a server with a fault.
type patient struct {
	server upstream.Server
	args   json.RawMessage
	cure   func()
	said   string // what the faulty call came to
}

// TestChaos calls servers with a fault each, all at the same time and behind one pool, beside good pipelines, which
// must not notice. The errors of each fault are in a golden file. Cured, each server must answer again.
func TestChaos(t *testing.T) {
	t.Parallel() // it waits
	patients := map[string]*patient{}
	for name := range stdioFaults {
		patients[name] = stdioPatient(t, name)
	}
	for name, fault := range httpFaults() {
		patients[name] = httpPatient(t, name, fault)
	}
	for _, name := range []string{
		"http hangs", "http hangs in the answer", "http hangs in the stream", "stdio hangs in a call", "stdio hangs wholly", "stdio is deaf",
	} {
		patients[name].server.Timeout = 4 * time.Second
	}
	patients["stdio says nothing"].server.StartTimeout = 20 * time.Second
	good := mcptest.New(mcptest.Tool{
		Name: "get", ReadOnly: true, Schema: `{"type":"object","properties":{"n":{}},"required":["n"]}`,
		Do: func(args map[string]any) (string, error) { return fmt.Sprint(args["n"]), nil },
	})
	servers := upstream.Static{
		{Name: "good memory", Dial: good.Dial},
		{Name: "good http", Dial: upstream.HTTP(upstream.Endpoint{URL: good.HTTP(t, nil).URL})},
		{Name: "good stdio", Dial: upstream.Stdio(mcptest.Child(t, "get"))},
	}
	for _, name := range slices.Sorted(maps.Keys(patients)) {
		servers = append(servers, patients[name].server)
	}
	p := mcptest.NewPool(t, upstream.Options{
		ResultMax: 64 << 10,
		Sources:   []upstream.Source{servers}, StartTimeout: 3 * time.Minute, ProbeTimeout: 20 * time.Second, // all start at once
		ListTimeout: 20 * time.Second, CallTimeout: time.Minute,
	})
	var ill sync.WaitGroup
	done := make(chan struct{})
	well := make(chan int)
	go func() { well <- goodPipelines(t, p, done) }()
	for name, x := range patients {
		ill.Go(func() { x.said = said(p.CallTool(t.Context(), stages.Call{Server: name, Name: "one", Args: x.args})) })
	}
	ill.Wait()
	close(done)
	if n := <-well; n < 3 {
		t.Errorf("only %d good pipelines ran beside the faults", n)
	}
	goldenChaos(t, patients)
	for name, x := range patients {
		x.cure()
		ill.Go(func() { cured(t, p, name) })
	}
	ill.Wait()
}

func stdioPatient(t *testing.T, name string) *patient {
	c := mcptest.Child(t, "chaos")
	cure := filepath.Join(t.TempDir(), "cure")
	c.Env[faultVariable], c.Env[cureVariable] = name, cure
	c.Where = "mcp.json:7"
	x := &patient{server: upstream.Server{Name: name, Dial: upstream.Stdio(c)}, cure: func() {
		if err := os.WriteFile(cure, nil, 0o600); err != nil {
			t.Error(err)
		}
	}}
	if name == "stdio is deaf" {
		x.args = json.RawMessage(`{"x":"` + strings.Repeat("x", 4<<20) + `"}`)
	}
	return x
}

func httpPatient(t *testing.T, name string, fault func(http.ResponseWriter, *http.Request, json.RawMessage)) *patient {
	var healed atomic.Bool
	s := handMade(t, func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
		if !healed.Load() {
			fault(w, r, id)
			return
		}
		respond(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, legacyAnswers["tools/call"]))
	})
	s.Config.ErrorLog = nil
	return &patient{
		server: upstream.Server{Name: name, Dial: upstream.HTTP(upstream.Endpoint{URL: s.URL + "/mcp", Where: "mcp.json:7"})},
		cure:   func() { healed.Store(true) },
	}
}

// said is what a call came to, with what differs from run to run taken out.
func said(res stages.Result, err error) string {
	var e *stages.Error
	switch {
	case err == nil:
		return fmt.Sprintf("ok %.40q", res.Data)
	case !errors.As(err, &e):
		return "no *stages.Error: " + err.Error()
	}
	text := fmt.Sprintf("%s %s\nhint: %s", e.Code, e.Msg, e.Hint)
	if e.RetryAfter > 0 && strings.Contains(e.Msg, "429") || strings.Contains(e.Msg, "503") && e.RetryAfter > 0 {
		text += fmt.Sprintf("\nagain after: %v", e.RetryAfter)
	}
	for _, r := range []struct{ from, to string }{
		{`127\.0\.0\.1:\d+`, "HOST"},
		{`command "[^"]*"`, `command "PROGRAM"`},
		{`after [0-9.]+m?s \(`, "after TIME ("},
		{`100000000\d`, "ID"},
		{`after [0-9.]+m?s$`, "after TIME"},
		{`has \d{7} bytes`, "has N bytes"},
	} {
		text = regexp.MustCompile(r.from).ReplaceAllString(text, r.to)
	}
	return text
}

func goldenChaos(t *testing.T, patients map[string]*patient) {
	t.Helper()
	var got strings.Builder
	for _, name := range slices.Sorted(maps.Keys(patients)) {
		fmt.Fprintf(&got, "-- %s --\n%s\n", name, patients[name].said)
	}
	path := filepath.Join("testdata", "chaos.golden")
	if *updateChaos {
		if err := os.WriteFile(path, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// goodPipelines runs pipelines over the good servers until done is closed, and returns how many.
func goodPipelines(t *testing.T, p *upstream.Pool, done <-chan struct{}) int {
	deps := stages.Deps{Tools: p, Schemas: schemas.Stages()}
	for n := 0; ; n++ {
		select {
		case <-done:
			return n
		case <-time.After(50 * time.Millisecond): // the faults take seconds
		}
		for _, server := range []string{"good memory", "good http", "good stdio"} {
			begin := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			plan, flaws := stages.CompileFed(ctx, []byte(`[{"type":"tool","server":"`+server+`","name":"get","for_each":true,"collect":"lines"}]`), deps)
			var out strings.Builder
			var err error
			if len(flaws) > 0 {
				err = flaws[0]
			} else {
				_, err = plan.Run(ctx, strings.NewReader("1\n2\n3\n"), &out, stages.RunOptions{})
			}
			cancel()
			if err != nil || out.String() != "\"1\"\n\"2\"\n\"3\"\n" {
				t.Errorf("%s: got %q, %v after %v", server, out.String(), err, time.Since(begin))
				return n
			}
		}
	}
}

// cured waits until a server answers as it should.
func cured(t *testing.T, p *upstream.Pool, name string) {
	var err error
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var res stages.Result
		if res, err = p.CallTool(t.Context(), stages.Call{Server: name, Name: "one"}); err == nil && string(res.Data) == "hand made" {
			return
		}
	}
	t.Errorf("%s: still fails after it was cured: %v", name, err)
}
