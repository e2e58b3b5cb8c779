package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/gateway/stdio"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// taskClient sends requests over HTTP, as text.
type taskClient struct {
	t    *testing.T
	h    http.Handler
	path string // /mcp if empty
	user string
	caps string // those it declares; those with tasks if empty
	more string // a member of the parameters, with which a call goes to the SDK
	name string // the header Mcp-Name, if it is not that of the request
	mode string // of a session: the version of the protocol
	id   string // of the session
}

const capsTasks = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// taskReply is an answer.
type taskReply struct {
	Code   int
	direct bool
	Error  struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
	Result json.RawMessage
	task   // of the result
}

type task struct {
	ResultType, TaskID, Status, StatusMessage string

	CreatedAt, LastUpdatedAt time.Time
	TTLMs, PollIntervalMs    int64

	Result  *mcp.CallToolResult
	Content []struct{ Text string }
}

// ask makes a request. params are members.
func (c taskClient) ask(method, params string) (r taskReply) {
	c.t.Helper()
	var about struct{ Name, TaskID string }
	err := json.Unmarshal([]byte("{"+params+"}"), &about)
	if _, wrongType := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !wrongType {
		c.t.Fatal(err)
	}
	headers := map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method": method, "Mcp-Name": about.Name + about.TaskID, "Authorization": "Bearer " + c.user + "x",
	}
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + orElse(c.caps, capsTasks) + `}`
	if c.mode != "" {
		headers["Mcp-Protocol-Version"], headers["Mcp-Session-Id"] = c.mode, c.id
		meta = `"_meta":{"io.modelcontextprotocol/clientCapabilities":` + capsTasks + `}`
	}
	if c.name != "" {
		headers["Mcp-Name"] = strings.TrimSpace(c.name)
	}
	body := `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + strings.TrimPrefix(params+","+meta, ",") + c.more + `}}`
	req := httptest.NewRequestWithContext(c.t.Context(), http.MethodPost, orElse(c.path, "/mcp"), strings.NewReader(body))
	for name, value := range headers {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	c.h.ServeHTTP(w, req)
	r.Code, r.direct = w.Code, w.Header().Get("Content-Length") != ""
	text := w.Body.String()
	if i := strings.LastIndex(text, "data: "); i >= 0 {
		text = text[i+len("data: "):]
	}
	err = json.Unmarshal([]byte(text), &r)
	if err == nil && r.Result != nil {
		err = json.Unmarshal(r.Result, &r.task)
	}
	if err != nil {
		c.t.Fatalf("%d: %s: %v", w.Code, w.Body, err)
	}
	return r
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// call calls execute_pipeline. args are more arguments.
func (c taskClient) call(pipeline, args string) taskReply {
	c.t.Helper()
	return c.ask("tools/call", `"name":"execute_pipeline","arguments":{"pipeline":`+pipeline+args+`}`)
}

// about makes a request about a task.
func (c taskClient) about(method, id string) taskReply {
	c.t.Helper()
	return c.ask(method, fmt.Sprintf(`"taskId":%q,"inputResponses":{}`, id))
}

// until asks for a task until it has a status.
func (c taskClient) until(id string, ok func(taskReply) bool) taskReply {
	c.t.Helper()
	for {
		if r := c.about("tasks/get", id); ok(r) || c.t.Context().Err() != nil {
			return r
		}
	}
}

func over(r taskReply) bool { return r.Status != "working" }

// clients of a gateway: each is a caller of its own.
func (w *durableWorld) clients(g *gateway.Gateway) taskClient {
	check := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
	}
	return taskClient{t: w.t, h: auth.RequireBearerToken(check, nil)(g.Handler())}
}

// holding is a tool that waits until it may answer.
func holding(t *testing.T) (tool mcptest.Tool, release func()) {
	hold := make(chan struct{})
	return mcptest.Tool{Name: "wait", ReadOnly: true, Raw: func(ctx context.Context, _ json.RawMessage) (string, error) {
		select {
		case <-hold:
		case <-ctx.Done():
			return "", ctx.Err()
		case <-t.Context().Done():
		}
		return `{"content":[{"type":"text","text":"{\"id\":9007199254740993}"}]}`, nil
	}}, func() { close(hold) }
}

const waitPipeline = `[{"type":"tool","server":"shop","name":"wait"},{"type":"command","command":"jq","args":["-c","."]}]`

// TestTask: a run that goes on is a task, whose result is the reply to the call, beside the SDK and in it alike.
func TestTask(t *testing.T) {
	var seen []taskReply
	for name, c := range map[string]taskClient{"beside the SDK": {}, "in the SDK": {more: `,"task":{"ttl":60000}`}} {
		t.Run(name, func(t *testing.T) {
			tool, release := holding(t)
			w := newDurableWorld(t, tool)
			g, _ := w.start(0)
			there := w.clients(g)
			there.more = c.more
			r := there.call(waitPipeline, `,"durable":true,"wait":0`)
			if r.direct != (c.more == "") || r.ResultType != "task" || r.Status != "working" || r.StatusMessage != "waiting for a worker" || r.TaskID == "" {
				t.Fatalf("the task is %+v", r)
			}
			r.Result = w.named(r)
			seen = append(seen, r)
			plain := there
			plain.caps = `{}`
			status := plain.call(fmt.Sprintf(`[{"type":"from","run":%q}]`, r.TaskID), `,"wait":0`)
			if status.ResultType != "complete" || status.TaskID != "" || len(status.Content) != 1 || w.status(status.Content[0].Text).Run != r.TaskID {
				t.Errorf("without the extension: %s", status.Result)
			}
			if again := there.call(fmt.Sprintf(`[{"type":"from","run":%q}]`, r.TaskID), ``); again.ResultType != "task" || again.TaskID != r.TaskID {
				t.Errorf("waiting on: %s", again.Result)
			}
			w.gateway(1)
			working := there.until(r.TaskID, func(r taskReply) bool { return r.StatusMessage == "1 tool call" })
			if working.ResultType != "complete" || working.Status != "working" || working.task.Result != nil || working.TTLMs != (24*time.Hour+30*time.Minute).Milliseconds() {
				t.Errorf("under way it is %+v", working)
			}
			release()
			done := there.until(r.TaskID, over)
			reply := plain.call(fmt.Sprintf(`[{"type":"from","run":%q}]`, r.TaskID), ``)
			if done.ResultType != "complete" || done.Status != "completed" || done.CreatedAt != r.CreatedAt || !done.LastUpdatedAt.After(done.CreatedAt) {
				t.Errorf("in the end it is %+v", done)
			}
			if inlined := w.named(done); !strings.Contains(string(inlined), `{\"id\":9007199254740993}`) || !cmp.Equal(inlined, w.named(reply)) {
				t.Errorf("the result %s is not the reply %s", inlined, reply.Result)
			}
			for _, method := range []string{"tasks/cancel", "tasks/update"} {
				if ack := there.about(method, r.TaskID); ack.ResultType != "complete" || ack.Error.Code != 0 || ack.Status != "" {
					t.Errorf("%s of a task that has ended: %+v", method, ack)
				}
			}
			if after := there.about("tasks/get", r.TaskID); after.Status != "completed" || after.LastUpdatedAt != done.LastUpdatedAt {
				t.Errorf("after all it is %+v", after)
			}
		})
	}
	if len(seen) == 2 && string(seen[0].Result) != string(seen[1].Result) {
		t.Errorf("the ways differ: %s and %s", seen[0].Result, seen[1].Result)
	}
}

// named is the result of a call in an answer, without names, times and the name of the server.
func (w *durableWorld) named(r taskReply) json.RawMessage {
	w.t.Helper()
	var all map[string]any
	if err := json.Unmarshal(r.Result, &all); err != nil {
		w.t.Fatal(err)
	}
	if inlined, ok := all["result"].(map[string]any); ok {
		all = inlined
	}
	if meta, ok := all["_meta"].(map[string]any); ok {
		delete(meta, "io.modelcontextprotocol/serverInfo")
	}
	for name := range all {
		if strings.HasSuffix(name, "At") {
			delete(all, name)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		w.t.Fatal(err)
	}
	return randomNames.ReplaceAll(text, []byte("ID"))
}

// TestTaskSoon: a run that ends soon is none.
func TestTaskSoon(t *testing.T) {
	w := newDurableWorld(t)
	g, _ := w.start(1)
	r := w.clients(g).call(`[{"type":"tool","server":"shop","name":"get_item","args":{"id":13}}]`, `,"durable":true,"wait":60`)
	if r.ResultType != "complete" || !strings.Contains(string(r.Result), `"isError":true`) {
		t.Errorf("got %s", r.Result)
	}
}

// TestTaskFails: a run that fails completes with an error of the tool, and has another task when it is continued.
func TestTaskFails(t *testing.T) {
	w := newDurableWorld(t)
	g, _ := w.start(0)
	c := w.clients(g)
	id := c.call(`[{"type":"tool","server":"shop","name":"get_item","args":{"id":13}}]`, `,"durable":true,"wait":0`).TaskID
	w.gateway(1)
	first := c.until(id, over)
	if first.Status != "completed" || !first.task.Result.IsError || !strings.Contains(string(first.Result), "no item 13") {
		t.Fatalf("got %s", first.Result)
	}
	run := randomNames.FindString(string(first.task.text()))
	again := c.call(fmt.Sprintf(`[{"type":"from","run":%q,"resume":true}]`, run), `,"durable":true,"wait":0`)
	if again.ResultType != "task" || again.TaskID != run || run == id {
		t.Errorf("continued as %s", again.Result)
	}
	if r := c.until(run, over); r.Status != "completed" || !r.task.Result.IsError {
		t.Errorf("continued: %s", r.Result)
	}
}

// text is that of the last block of the result.
func (r task) text() string {
	if r.Result == nil || len(r.Result.Content) == 0 {
		return ""
	}
	return r.Result.Content[len(r.Result.Content)-1].(*mcp.TextContent).Text
}

// TestTaskCancelled: a task that is cancelled ends, with its calls, at once.
func TestTaskCancelled(t *testing.T) {
	for name, begun := range map[string]bool{"under way": true, "before it begins": false} {
		t.Run(name, func(t *testing.T) {
			tool, release := holding(t)
			w := newDurableWorld(t, tool)
			g, _ := w.start(0)
			c := w.clients(g)
			id := c.call(waitPipeline, `,"durable":true,"wait":0`).TaskID
			if begun {
				w.gateway(1)
				c.until(id, func(r taskReply) bool { return r.StatusMessage == "1 tool call" })
			}
			if ack := c.about("tasks/cancel", id); ack.ResultType != "complete" || ack.Status != "" {
				t.Fatalf("got %+v", ack)
			}
			at := time.Now()
			r := c.until(id, over)
			if took := time.Since(at); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
			if later := c.about("tasks/get", id); later.LastUpdatedAt != r.LastUpdatedAt {
				t.Errorf("it has ended at %s and %s", r.LastUpdatedAt, later.LastUpdatedAt)
			}
			if r.Status != "cancelled" || r.task.Result != nil || !strings.Contains(r.StatusMessage, "cancelled") || r.PollIntervalMs != 0 {
				t.Errorf("got %s", r.Result)
			}
			run := randomNames.FindString(r.StatusMessage[strings.LastIndex(r.StatusMessage, `"run"`):])
			again := c.call(fmt.Sprintf(`[{"type":"from","run":%q,"resume":true}]`, run), `,"durable":true,"wait":0`)
			if again.ResultType != "task" || again.TaskID == id {
				t.Errorf("continued as %s", again.Result)
			}
			if !begun {
				w.gateway(1)
			}
			release()
			if r := c.until(again.TaskID, over); r.Status != "completed" || r.task.text() == "" || r.task.Result.IsError {
				t.Errorf("continued: %s", r.Result)
			}
			if r := c.about("tasks/get", id); r.Status != "cancelled" {
				t.Errorf("after all: %s", r.Result)
			}
		})
	}
}

// TestTaskRefused are requests that have no answer, at a gateway with an engine and one without.
func TestTaskRefused(t *testing.T) {
	tool, _ := holding(t)
	w := newDurableWorld(t, tool)
	source := &memberSource{
		servers: []upstream.Server{{Name: "shop", Dial: w.shop.Dial}}, groups: []upstream.Group{{Name: "dev", Servers: []string{"shop"}}},
	}
	g, _ := w.start(0, func(o *gateway.Options) {
		o.Upstream = mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{source}})
	})
	without, _ := w.start(0, func(o *gateway.Options) { o.Durable = gateway.Durable{} })
	alice := w.clients(g)
	group := alice
	group.path = "/mcp/dev"
	run, inGroup := alice.call(waitPipeline, `,"durable":true,"wait":0`).TaskID, group.call(waitPipeline, `,"durable":true,"wait":0`).TaskID
	if r := group.about("tasks/get", inGroup); r.Status != "working" {
		t.Errorf("in the group: %+v", r)
	}
	bob, plain, odd, misnamed, unnamed, older, elsewhere := alice, alice, alice, alice, alice, alice, w.clients(without)
	bob.user, plain.caps, odd.caps = "bob", `{"elicitation":{}}`, `{"extensions":{"io.modelcontextprotocol/tasks":true}}`
	misnamed.name, unnamed.name = inGroup, " "
	older.mode, older.id = "2025-11-25", newSession(t, alice.h)
	for name, c := range map[string]struct {
		as     taskClient
		method string
		params string
		want   string
	}{
		"unknown":                    {alice, "tasks/get", `"taskId":"r_aaaaaaaaaaaaaaaaaaaaaaaaaa"`, noTask},
		"of another caller":          {bob, "tasks/get", `"taskId":"` + run + `"`, noTask},
		"of another caller, to end":  {bob, "tasks/cancel", `"taskId":"` + run + `"`, noTask},
		"of another caller, update":  {bob, "tasks/update", `"taskId":"` + run + `"`, noTask},
		"of a group, outside":        {alice, "tasks/get", `"taskId":"` + inGroup + `"`, noTask},
		"of no group, in one":        {group, "tasks/get", `"taskId":"` + run + `"`, noTask},
		"another number":             {alice, "tasks/get", `"taskId":"` + run + `.2"`, noTask},
		"the number 1":               {alice, "tasks/get", `"taskId":"` + run + `.1"`, noTask},
		"a number with a zero":       {alice, "tasks/get", `"taskId":"` + run + `.01"`, noTask},
		"a long id":                  {alice, "tasks/get", `"taskId":"` + strings.Repeat("r", 1000) + `"`, noTask},
		"no id":                      {unnamed, "tasks/get", ``, noTask},
		"an id that is no string":    {unnamed, "tasks/get", `"taskId":7`, "400 -32602"},
		"no extension":               {plain, "tasks/get", `"taskId":"` + run + `"`, noExtension},
		"no extension, to end":       {plain, "tasks/cancel", `"taskId":"` + run + `"`, noExtension},
		"no extension, update":       {plain, "tasks/update", `"taskId":"` + run + `"`, noExtension},
		"no extension and no task":   {plain, "tasks/get", `"taskId":"x"`, noExtension},
		"an extension that is true":  {odd, "tasks/get", `"taskId":"` + run + `"`, noExtension},
		"notifications":              {plain, "subscriptions/listen", `"notifications":{"taskIds":["` + run + `"]}`, noExtension},
		"another Mcp-Name":           {misnamed, "tasks/get", `"taskId":"` + run + `"`, "400 -32020"},
		"no Mcp-Name":                {unnamed, "tasks/get", `"taskId":"` + run + `"`, "400 -32020"},
		"the list":                   {alice, "tasks/list", ``, "404 -32601"},
		"the result":                 {alice, "tasks/result", `"taskId":"` + run + `"`, "404 -32601"},
		"the older era":              {older, "tasks/get", `"taskId":"` + run + `"`, "200 -32601"},
		"a gateway without durables": {elsewhere, "tasks/get", `"taskId":"` + run + `"`, "404 -32601"},
	} {
		r := c.as.ask(c.method, c.params)
		if got := fmt.Sprintf("%d %d %s%s", r.Code, r.Error.Code, r.Error.Message, r.Error.Data); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if r := older.call(waitPipeline, `,"durable":true,"wait":0`); r.ResultType != "" || w.status(r.Content[0].Text).Run == "" {
		t.Errorf("the older era: %s", r.Result)
	}
	if r := alice.about("tasks/get", run); r.Status != "working" {
		t.Errorf("after all that: %+v", r)
	}
}

const (
	noTask      = "400 -32602 there is no such task of yours here: it has expired, or belongs to another caller or group"
	noExtension = `400 -32021 missing required client capability: the extension io.modelcontextprotocol/tasks` +
		`{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
)

func newSession(t *testing.T, h http.Handler) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":`+capsTasks+`,"clientInfo":{"name":"t","version":"1"}}}`))
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer x"} {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Header().Get("Mcp-Session-Id") == "" || strings.Contains(w.Body.String(), "tasks") {
		t.Fatalf("got %d: %s", w.Code, w.Body)
	}
	return w.Header().Get("Mcp-Session-Id")
}

// TestTaskOffered: a gateway with an engine declares the extension, and others do not.
func TestTaskOffered(t *testing.T) {
	w := newDurableWorld(t)
	for _, d := range []gateway.Durable{{}, {Engine: w.engine}} {
		g, _ := w.start(0, func(o *gateway.Options) { o.Durable = d })
		r := w.clients(g).ask("server/discover", "")
		if got := strings.Contains(string(r.Result), `"extensions":{"io.modelcontextprotocol/tasks":{}}`); got != (d.Engine != nil) {
			t.Errorf("with the engine %v: %s", d.Engine, r.Result)
		}
	}
}

// TestTaskBehind: a gateway is a server of a pool, which waits for the task, and cancels it when its caller gives up.
func TestTaskBehind(t *testing.T) {
	tool, release := holding(t)
	w := newDurableWorld(t, tool)
	g, _ := w.start(2)
	served := httptest.NewServer(g.Handler())
	t.Cleanup(func() { served.CloseClientConnections(); served.Close() })
	pool := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{
		upstream.Static{{Name: "behind", Dial: upstream.HTTP(upstream.Endpoint{URL: served.URL + "/mcp"})}},
	}})
	call := stages.Call{Server: "behind", Name: "execute_pipeline", Args: json.RawMessage(`{"durable":true,"wait":0,"pipeline":` + waitPipeline + `}`)}
	said := make(chan string, 100)
	call.Progress = func(p stages.ToolProgress) { said <- p.Message }
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	go func() {
		for message := range said {
			if message == "1 tool call" {
				giveUp()
				return
			}
		}
	}()
	if _, err := pool.CallTool(ctx, call); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	w.engine.mu.Lock()
	var jobs []*engineJob
	for _, j := range w.engine.jobs {
		jobs = append(jobs, j)
	}
	w.engine.mu.Unlock()
	if len(jobs) != 1 {
		t.Fatalf("there are %d jobs", len(jobs))
	}
	<-jobs[0].done
	release()
	call.Progress = nil
	if res, err := pool.CallTool(t.Context(), call); err != nil || !strings.Contains(string(res.Data), "9007199254740993") {
		t.Errorf("got %s, %v", res.Data, err)
	}
}

// TestTaskStdio: the client on standard input and output has tasks, too, once it speaks the newer era.
func TestTaskStdio(t *testing.T) {
	tool, release := holding(t)
	w := newDurableWorld(t, tool)
	g, _ := w.start(1)
	in, out := io.Pipe()
	answers, written := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- stdio.Serve(t.Context(), stdio.Options{Server: g.Server(), In: in, Out: written, Direct: g.Direct})
		written.Close()
	}()
	lines := bufio.NewScanner(answers)
	ask := func(method, params string) (r taskReply) {
		t.Helper()
		const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + capsTasks + `}`
		if _, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`+"\n", method, params+meta); err != nil || !lines.Scan() {
			t.Fatal(err, lines.Err())
		}
		err := json.Unmarshal(lines.Bytes(), &r)
		if err == nil && r.Error.Code == 0 {
			err = json.Unmarshal(r.Result, &r.task)
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	ask("server/discover", "")
	begun := ask("tools/call", `"name":"execute_pipeline","arguments":{"durable":true,"pipeline":`+waitPipeline+`},`)
	if begun.ResultType != "task" {
		t.Fatalf("got %s, %+v", begun.Result, begun.Error)
	}
	release()
	about := fmt.Sprintf(`"taskId":%q,`, begun.TaskID)
	r := ask("tasks/get", about)
	for ; r.Status == "working"; r = ask("tasks/get", about) {
	}
	if r.Status != "completed" || !strings.Contains(r.task.text(), "9007199254740993") {
		t.Errorf("got %s, %+v", r.Result, r.Error)
	}
	out.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
