package mcptest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mcsh-dev/mcsh/upstream"
)

// Tasks is an MCP server whose tools answer with tasks, in one of the two forms: work, which may change something, and look,
// which only reads. The result of a task is the text "done: " and the arguments of the call. It is used over HTTP.
type Tasks struct {
	Newer    bool   // the form of 2026-07-28, else that of 2025-11-25
	Optional bool   // a call need not ask for a task
	Working  int    // requests for a task that find it working, before it completes
	Members  string // more members of each task, such as `,"statusMessage":"half"`; empty: an interval of 1 ms

	// Reply answers a request in place of the server, if the text is not empty: with a result, with an error (`"error":{...}`),
	// or not at all ([Drop]). It may be nil, and may be called concurrently.
	Reply func(TaskRequest) string

	mu    sync.Mutex // guards the fields below
	calls []TaskRequest
	tasks map[string]*taskState
	heard chan struct{} // closed and made anew with every request
}

// Drop is the reply that ends the connection.
const Drop = "drop"

// A TaskRequest is a request that a [Tasks] has got.
type TaskRequest struct {
	Method string
	N      int // how many of the method there have been, from 1
	Header http.Header
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Task      json.RawMessage `json:"task"`
		TaskID    string          `json:"taskId"`
		Inputs    json.RawMessage `json:"inputResponses"`
		Meta      json.RawMessage `json:"_meta"`
	}
}

// A taskState is one task of the server.
type taskState struct {
	id, status string
	args       json.RawMessage
	polls      int
}

// Serve serves until the end of the test, and returns the server as a pool's.
func (s *Tasks) Serve(t testing.TB) upstream.Server {
	t.Helper()
	s.tasks, s.heard = map[string]*taskState{}, make(chan struct{})
	served := httptest.NewServer(s)
	t.Cleanup(func() {
		served.CloseClientConnections()
		served.Close()
	})
	return upstream.Server{Name: "tasks", Dial: upstream.HTTP(upstream.Endpoint{URL: served.URL})}
}

// Requests are those of a method so far.
func (s *Tasks) Requests(method string) []TaskRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests(method)
}

func (s *Tasks) requests(method string) (list []TaskRequest) {
	for _, r := range s.calls {
		if r.Method == method {
			list = append(list, r)
		}
	}
	return list
}

// Order are the requests of some methods so far, in their order.
func (s *Tasks) Order(methods ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, r := range s.calls {
		if contains(methods, r.Method) {
			list = append(list, r.Method)
		}
	}
	return strings.Join(list, " ")
}

// Await waits until there have been n requests of a method.
func (s *Tasks) Await(t testing.TB, method string, n int) {
	t.Helper()
	for {
		s.mu.Lock()
		got, heard := len(s.requests(method)), s.heard
		s.mu.Unlock()
		if got >= n {
			return
		}
		select {
		case <-heard:
		case <-t.Context().Done():
			t.Fatalf("there were %d requests %s, want %d", got, method, n)
		}
	}
}

// Forget makes the server forget all tasks.
func (s *Tasks) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tasks)
}

// ServeHTTP implements [http.Handler].
func (s *Tasks) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var m struct {
		ID json.RawMessage
		TaskRequest
	}
	if req.Method != http.MethodPost || json.NewDecoder(req.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	m.Header = req.Header
	answer := s.take(m.TaskRequest)
	switch {
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	case answer == Drop:
		panic(http.ErrAbortHandler)
	case !strings.HasPrefix(answer, `"error"`):
		answer = `"result":` + answer
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,`+answer+`}`) // the client may be gone
}

// take notes a request and answers it.
func (s *Tasks) take(r TaskRequest) string {
	s.mu.Lock()
	r.N = len(s.requests(r.Method)) + 1
	s.calls = append(s.calls, r)
	close(s.heard)
	s.heard = make(chan struct{})
	s.mu.Unlock()
	if s.Reply != nil {
		if reply := s.Reply(r); reply != "" {
			return reply
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer(r)
}

const (
	taskTools = `{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[` +
		`{"name":"work","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},` +
		`{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"execution":{"taskSupport":"required"}}]}`
	olderHello = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"tasks","version":"1"}}`
	newerHello = `{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["2026-07-28"],` +
		`"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"serverInfo":{"name":"tasks","version":"1"}}`
	notFound   = `"error":{"code":-32601,"message":"there is no such method"}`
	noSuchTask = `"error":{"code":-32602,"message":"Failed to retrieve task: Task not found"}`
)

// answer answers a request as a server should. The caller has mu.
func (s *Tasks) answer(r TaskRequest) string {
	switch r.Method {
	case "server/discover":
		return choose(s.Newer, newerHello, notFound)
	case "initialize":
		return choose(s.Newer, notFound, olderHello)
	case "ping":
		return `{}`
	case "tools/list":
		return taskTools
	case "tools/call":
		return s.start(r)
	}
	task := s.tasks[r.Params.TaskID]
	if task == nil {
		return noSuchTask
	}
	switch r.Method {
	case "tasks/get":
		if task.polls++; task.status == "working" && task.polls > s.Working {
			task.status = "completed"
		}
		return s.describe(task, `"resultType":"complete",`)
	case "tasks/result":
		return task.result()
	case "tasks/cancel":
		task.status = "cancelled"
		return s.describe(task, "")
	case "tasks/update":
		return `{"resultType":"complete"}`
	}
	return notFound
}

func choose(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

// start starts a task.
func (s *Tasks) start(r TaskRequest) string {
	switch {
	case s.Newer && r.Params.Task != nil:
		return `"error":{"code":-32602,"message":"a client does not ask for a task"}`
	case s.Newer && !strings.Contains(string(r.Params.Meta), `"io.modelcontextprotocol/tasks"`):
		return `"error":{"code":-32021,"message":"missing required client capability"}`
	case !s.Newer && r.Params.Task == nil && !s.Optional:
		return notFound
	}
	task := &taskState{id: fmt.Sprintf("t-%d", r.N), status: "working", args: r.Params.Arguments}
	s.tasks[task.id] = task
	if s.Newer {
		return s.describe(task, `"resultType":"task",`)
	}
	return `{"task":` + s.describe(task, "") + `}`
}

// describe writes a task.
func (s *Tasks) describe(t *taskState, before string) string {
	more := s.Members
	if more == "" {
		more = choose(s.Newer, `,"pollIntervalMs":1,"ttlMs":null`, `,"pollInterval":1,"ttl":null`)
	}
	if s.Newer && t.status == "completed" {
		more += `,"result":` + t.result()
	}
	const at = `"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z"`
	return fmt.Sprintf(`{%s"taskId":%q,"status":%q,%s%s}`, before, t.id, t.status, at, more)
}

func (t *taskState) result() string {
	text, err := json.Marshal("done: " + string(t.args))
	if err != nil {
		panic("mcptest: " + err.Error()) // text can always be encoded
	}
	return `{"content":[{"type":"text","text":` + string(text) + `}]}`
}
