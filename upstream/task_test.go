package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// taskForms are the two forms of tasks.
var taskForms = map[string]bool{"older": false, "newer": true}

// callTask calls a tool of a server of tasks.
func callTask(ctx context.Context, p *upstream.Pool, c stages.Call) (string, error) {
	c.Server, c.Args = "tasks", json.RawMessage(`{"n":1}`)
	if c.Name == "" {
		c.Name = "work"
	}
	res, err := p.CallTool(ctx, c)
	if err != nil {
		return "", err
	}
	defer res.Memory.Close()
	return string(res.Data), nil
}

const taskResult = `done: {"n":1}`

// TestTasks: a tool that answers with a task is waited for, in both forms, and what the server says of the task is progress.
func TestTasks(t *testing.T) {
	t.Parallel() // it waits
	for form, newer := range taskForms {
		t.Run(form, func(t *testing.T) {
			s := &mcptest.Tasks{Newer: newer, Working: 3, Members: `,"statusMessage":"half\u0007 way","pollInterval":1,"pollIntervalMs":1`}
			p := staticPool(t, upstream.Options{}, s.Serve(t))
			var said []string
			var handles []string
			got, err := callTask(t.Context(), p, stages.Call{
				Progress: func(p stages.ToolProgress) { said = append(said, p.Message) },
				Task: &stages.Task{Keep: func(handle string) {
					handles = append(handles, handle)
					if n := len(s.Requests("tasks/get")); n != 0 {
						t.Errorf("the task was kept after %d requests for it", n)
					}
				}},
			})
			if err != nil || got != taskResult {
				t.Fatalf("got %q, %v", got, err)
			}
			if !slices.Equal(said, []string{"half way"}) || len(handles) != 1 {
				t.Errorf("progress was %q, and the handles are %q", said, handles)
			}
			if polls := s.Requests("tasks/get"); len(polls) != 4 || newer && polls[0].Header.Get("Mcp-Name") != "t-1" {
				t.Errorf("there were %d requests for the task, with the name %q", len(polls), polls[0].Header.Get("Mcp-Name"))
			}
			got, err = callTask(t.Context(), p, stages.Call{Task: &stages.Task{Handle: handles[0]}})
			if err != nil || got != taskResult || len(s.Requests("tools/call")) != 1 || len(s.Requests("tasks/cancel")) != 0 {
				t.Errorf("waiting again: got %q, %v, after %d calls", got, err, len(s.Requests("tools/call")))
			}
			s.Forget()
			_, err = callTask(t.Context(), p, stages.Call{Task: &stages.Task{Handle: handles[0]}})
			wantError(t, err, stages.ToolError, "does not know the task", "find out")
			if !errors.Is(err, stages.ErrNoTask) || len(s.Requests("tools/call")) != 1 {
				t.Errorf("of a task that is forgotten: %v", err)
			}
		})
	}
}

// TestTaskUnasked: a server may answer with a task that nobody has asked for.
func TestTaskUnasked(t *testing.T) {
	s := &mcptest.Tasks{Optional: true, Reply: func(r mcptest.TaskRequest) string {
		if r.Method == "tools/list" {
			return `{"tools":[{"name":"work","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}]}`
		}
		return ""
	}}
	got, err := callTask(t.Context(), staticPool(t, upstream.Options{}, s.Serve(t)), stages.Call{})
	if err != nil || got != taskResult || s.Requests("tools/call")[0].Params.Task != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// failing is the JSON-RPC error of a server.
func failing(code int, words string) string {
	return fmt.Sprintf(`"error":{"code":%d,"message":%q}`, code, words)
}

// at replies to the nth request of a method; n 0 is each.
func at(method string, n int, reply string) func(mcptest.TaskRequest) string {
	return func(r mcptest.TaskRequest) string {
		if r.Method == method && (n == 0 || r.N == n) {
			return reply
		}
		return ""
	}
}

// inBothForms is a task in the result of a call, as both forms have it at once.
func inBothForms(members string) string {
	return `{"resultType":"task","task":{` + members + `},` + members + `}`
}

// TestTaskFaults are the faults of servers with tasks: what becomes of the call, and whether the task is cancelled.
func TestTaskFaults(t *testing.T) {
	t.Parallel() // it waits
	const said = `"status":"working","pollInterval":1,"pollIntervalMs":1`
	long := strings.Repeat("x", 1<<20)
	many := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"q%d":{"method":"elicitation/create"}`, i))
		}
		return `{"taskId":"t-1","status":"input_required","pollIntervalMs":1,"inputRequests":{` + strings.Join(list, ",") + `}}`
	}
	for _, tt := range []struct {
		name, forms string
		reply       func(mcptest.TaskRequest) string
		want        string // of the error; empty: there is none
		cancelled   bool
	}{
		{"a lost answer", "both", at("tasks/get", 1, mcptest.Drop), "", false},
		{"several lost answers", "both", func(r mcptest.TaskRequest) string {
			if r.Method == "tasks/get" && r.N < 4 {
				return mcptest.Drop
			}
			return ""
		}, "", false},
		{"an internal error", "both", at("tasks/get", 2, failing(-32603, "database is locked")), "", false},
		{"a lost result", "older", at("tasks/result", 1, mcptest.Drop), "", false},
		{"an id of 1 MB", "both", at("tools/call", 0, inBothForms(said+`,"taskId":"`+long+`"`)), "its id takes 1048578 bytes", false},
		{"an id with control characters", "both", at("tools/call", 0, inBothForms(said+`,"taskId":"a\r\nb"`)), "control characters", false},
		{"no id", "both", at("tools/call", 0, inBothForms(said)), "it has no id", false},
		{"an id that is a number", "both", at("tools/call", 0, inBothForms(said+`,"taskId":7`)), "its id is 7", false},
		{"a task that is none", "older", at("tools/call", 0, `{"task":[1]}`), "it is not an object but [1]", false},
		{"another id", "both", at("tasks/get", 2, `{"taskId":"t-2",`+said+`}`), "has answered with another one", true},
		{"an unknown status", "both", at("tasks/get", 1, `{"taskId":"t-1","status":"dancing"}`), `status that is not known: "dancing"`, true},
		{"no status", "both", at("tasks/get", 1, `{"taskId":"t-1"}`), "has no status", true},
		{"no object", "both", at("tasks/get", 1, `"soon"`), "not valid", true},
		{"completed without a result", "newer", at("tasks/get", 1, `{"taskId":"t-1","status":"completed"}`), "completed without a result", false},
		{"completed with null", "older", at("tasks/result", 1, `null`), "completed without a result", false},
		{"a task as the result", "older", at("tasks/result", 1, `{"task":{"taskId":"t-1","status":"working"}}`), "is a task again", false},
		{"a task as the result", "newer", at("tasks/get", 1, `{"taskId":"t-1","status":"completed","result":{"resultType":"task","taskId":"x"}}`), "is a task again", false},
		{"a result before its time", "newer", at("tasks/get", 1, `{"taskId":"t-1","result":{"content":[]},`+said+`}`), "", false},
		{"an interval of 0", "both", at("tasks/get", 1, `{"taskId":"t-1","status":"working","pollInterval":0,"pollIntervalMs":0}`), "", false},
		{"an interval that is no number", "both", at("tasks/get", 1, `{"taskId":"t-1","status":"working","pollInterval":"NaN","pollIntervalMs":-5}`), "", false},
		{"failed", "newer", at("tasks/get", 1, `{"taskId":"t-1","status":"failed","error":{"code":-32602,"message":"out of ink"}}`), "out of ink", false},
		{"failed without words", "newer", at("tasks/get", 1, `{"taskId":"t-1","status":"failed"}`), "failed without a reason", false},
		{"failed", "older", both(at("tasks/get", 1, `{"taskId":"t-1","status":"failed","statusMessage":"out of ink"}`), at("tasks/result", 1, failing(-32603, "no result"))), "out of ink", false},
		{"failed with a result", "older", both(at("tasks/get", 1, `{"taskId":"t-1","status":"failed"}`), at("tasks/result", 1, `{"isError":true,"content":[{"type":"text","text":"out of ink"}]}`)), "out of ink", false},
		{"cancelled by the server", "both", at("tasks/get", 1, `{"taskId":"t-1","status":"cancelled","statusMessage":"no time"}`), `was cancelled: "no time"`, false},
		{"forgotten", "both", at("tasks/get", 1, failing(-32602, "Task has expired")), `"Task has expired"`, false},
		{"no such method", "both", at("tasks/get", 0, failing(-32601, "tasks/get?")), `does not serve requests about it: "tasks/get?"`, true},
		{"too many questions", "newer", at("tasks/get", 1, many(17)), "more than 16 things at once", true},
		{"questions without end", "newer", func(r mcptest.TaskRequest) string {
			if r.Method == "tasks/get" {
				return strings.ReplaceAll(many(16), `"q`, fmt.Sprintf(`"q%d-`, r.N))
			}
			return ""
		}, "more than 32 questions", true},
		{"a question with a long name", "newer", at("tasks/get", 1, strings.ReplaceAll(many(1), "q0", long)), "a question has no method, or more than 65536 bytes", true},
		{"a question with a broken name", "newer", at("tasks/get", 1, strings.ReplaceAll(many(1), "q0", `\u12`)), "not a valid object", true},
		{"questions that refuse answers", "newer", both(at("tasks/get", 1, many(1)), at("tasks/update", 1, failing(-32603, "no updates"))), "no updates", true},
		{"a list of questions", "newer", at("tasks/get", 1, `{"taskId":"t-1","status":"input_required","inputRequests":[1]}`), "not a valid object", true},
		{"a question that is none", "newer", at("tasks/get", 1, `{"taskId":"t-1","status":"input_required","inputRequests":{"a":5}}`), "a question has no method", true},
		{"a question that nobody answers", "newer", at("tasks/get", 1, strings.ReplaceAll(many(1), "elicitation/create", "sampling/createMessage")), "got no answer", true},
		{"questions of the older form", "older", at("tasks/get", 1, `{"taskId":"t-1","status":"input_required"}`), "", false},
		{"no questions", "newer", at("tasks/get", 1, `{"taskId":"t-1","status":"input_required","pollIntervalMs":1}`), "", false},
	} {
		for form, newer := range taskForms {
			if tt.forms != form && tt.forms != "both" {
				continue
			}
			t.Run(tt.name+", "+form, func(t *testing.T) {
				t.Parallel()
				s := &mcptest.Tasks{Newer: newer, Working: 1, Reply: tt.reply}
				p := staticPool(t, upstream.Options{}, s.Serve(t))
				got, err := callTask(t.Context(), p, stages.Call{Task: &stages.Task{Keep: func(string) {}, Lasts: func() bool { return true }}})
				if tt.want == "" && (err != nil || got != taskResult) {
					t.Errorf("got %q, %v", got, err)
				}
				if tt.want != "" {
					wantError(t, err, stages.ToolError, tt.want, "")
					if e, ok := errors.AsType[*stages.Error](err); ok && len(e.Msg) > 1000 {
						t.Errorf("the error has %d bytes", len(e.Msg))
					}
				}
				if n := len(s.Requests("tools/call")); n != 1 {
					t.Errorf("the tool was called %d times", n)
				}
				if tt.cancelled {
					s.Await(t, "tasks/cancel", 1)
				} else if n := len(s.Requests("tasks/cancel")); n != 0 {
					t.Errorf("the task was cancelled %d times", n)
				}
			})
		}
	}
}

// both is one reply or else the other.
func both(a, b func(mcptest.TaskRequest) string) func(mcptest.TaskRequest) string {
	return func(r mcptest.TaskRequest) string {
		if reply := a(r); reply != "" {
			return reply
		}
		return b(r)
	}
}

// TestTaskEnds: a wait that ends before the task does, for each reason, with a task that is kept and one that is not.
func TestTaskEnds(t *testing.T) {
	t.Parallel() // it waits
	for _, tt := range []struct {
		name      string
		server    func(*upstream.Server)
		call      stages.Call
		end       func(cancel func(), p *upstream.Pool)
		code      stages.Code // empty: the error of the context
		cancelled bool        // though it is kept
	}{
		{name: "its caller gives up", end: func(cancel func(), _ *upstream.Pool) { cancel() }},
		{name: "the pool is closed", end: func(_ func(), p *upstream.Pool) { _ = p.Close() }, code: stages.Cancelled, cancelled: true},
		{name: "the time of the stage is up", call: stages.Call{Timeout: 10 * time.Second, Limited: true}, code: stages.Timeout},
		{name: "the time of the server is up", server: func(s *upstream.Server) { s.Timeout = 10 * time.Second }, code: stages.Timeout},
	} {
		for form, newer := range taskForms {
			for _, kept := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, %s, kept %v", tt.name, form, kept), func(t *testing.T) {
					t.Parallel()
					s := &mcptest.Tasks{Newer: newer, Working: 1 << 30}
					server := s.Serve(t)
					if tt.server != nil {
						tt.server(&server)
					}
					p := staticPool(t, upstream.Options{}, server)
					call := tt.call
					call.Task = &stages.Task{Keep: func(string) {}, Lasts: func() bool { return kept }}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if tt.end != nil {
						go func() {
							s.Await(t, "tasks/get", 2)
							tt.end(cancel, p)
						}()
					}
					_, err := callTask(ctx, p, call)
					if e, ok := errors.AsType[*stages.Error](err); tt.code == "" && !errors.Is(err, context.Canceled) || tt.code != "" && (!ok || e.Code != tt.code) {
						t.Errorf("got %v", err)
					}
					if !kept || tt.cancelled {
						s.Await(t, "tasks/cancel", 1)
					} else if n := len(s.Requests("tasks/cancel")); n > 0 {
						t.Errorf("the task was cancelled %d times", n)
					}
				})
			}
		}
	}
}

// TestTaskTime: the usual time of a call is that of its answer, not of its task.
func TestTaskTime(t *testing.T) {
	t.Parallel()
	s := &mcptest.Tasks{Working: 110} // at least 11 seconds
	p := staticPool(t, upstream.Options{}, s.Serve(t))
	if got, err := callTask(t.Context(), p, stages.Call{Timeout: 10 * time.Second}); err != nil || got != taskResult {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestTaskQuestions: a task of the newer form asks the caller, all questions at once and each once; without a caller it gets a
// refusal. The clock of the call is paused meanwhile.
func TestTaskQuestions(t *testing.T) {
	t.Parallel() // it waits
	const asks = `{"taskId":"t-1","status":"input_required","pollIntervalMs":1,"inputRequests":{` +
		`"a":{"method":"elicitation/create","params":{"message":"Which?","requestedSchema":{"type":"object","properties":{}}}},` +
		`"b\u0022":{"method":"elicitation/create","params":{"mode":"url","url":"https://example.com/"}}}}`
	reply := func(r mcptest.TaskRequest) string {
		if r.Method == "tasks/get" && r.N <= 3 {
			return asks
		}
		return ""
	}
	for _, tt := range []struct {
		name  string
		asker *stages.Asker
		want  string
	}{
		{"nobody", nil, `{"a":{"action":"cancel"},"b\u0022":{"action":"cancel"}}`},
		{"a person with forms", &stages.Asker{Form: true}, `{"a":{"action":"accept"},"b\u0022":{"action":"cancel"}}`},
		{"a person with both", &stages.Asker{Form: true, URL: true}, `{"a":{"action":"accept"},"b\u0022":{"action":"accept"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &mcptest.Tasks{Newer: true, Reply: reply}
			p := staticPool(t, upstream.Options{}, s.Serve(t))
			var mu sync.Mutex
			var asked []string
			if tt.asker != nil {
				tt.asker.Ask = func(_ context.Context, q stages.Question) (json.RawMessage, error) {
					mu.Lock()
					defer mu.Unlock()
					asked = append(asked, q.Server+"/"+q.Tool+" "+q.Item+" "+q.Method)
					return json.RawMessage(`{"action":"accept"}`), nil
				}
			}
			got, err := callTask(t.Context(), p, stages.Call{Asker: tt.asker, Item: "item 1"})
			if err != nil || got != taskResult {
				t.Fatalf("got %q, %v", got, err)
			}
			updates := s.Requests("tasks/update")
			if len(updates) != 1 || string(updates[0].Params.Inputs) != tt.want {
				t.Errorf("the answers are %+v, want %s", updates, tt.want)
			}
			if want := strings.Count(tt.want, "accept"); len(asked) != want || want > 0 && asked[0] != "tasks/work item 1 elicitation/create" {
				t.Errorf("asked %q", asked)
			}
		})
	}
	t.Run("the clock", func(t *testing.T) {
		t.Parallel()
		s := &mcptest.Tasks{Newer: true, Reply: reply}
		p := staticPool(t, upstream.Options{}, s.Serve(t))
		limit := 10 * time.Second
		slow := &stages.Asker{Form: true, Ask: func(context.Context, stages.Question) (json.RawMessage, error) {
			time.Sleep(limit + time.Second)
			return json.RawMessage(`{"action":"accept"}`), nil
		}}
		if got, err := callTask(t.Context(), p, stages.Call{Asker: slow, Timeout: limit, Limited: true}); err != nil || got != taskResult {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// TestTaskFirstQuestions: the time in which a call asks something before it answers with a task counts for neither.
func TestTaskFirstQuestions(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Second
	s := &mcptest.Tasks{Newer: true, Working: 2, Reply: at("tools/call", 1,
		`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"requestedSchema":{"type":"object"}}}}}`)}
	slow := &stages.Asker{Form: true, Ask: func(context.Context, stages.Question) (json.RawMessage, error) {
		time.Sleep(limit + time.Second)
		return json.RawMessage(`{"action":"accept"}`), nil
	}}
	got, err := callTask(t.Context(), staticPool(t, upstream.Options{}, s.Serve(t)), stages.Call{Asker: slow, Timeout: limit, Limited: true})
	if err != nil || got != taskResult {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestTaskWrongQuestions: a question of a task is checked as that of any call, and shows no secret of the configuration.
func TestTaskWrongQuestions(t *testing.T) {
	s := &mcptest.Tasks{Newer: true, Reply: at("tasks/get", 1, `{"taskId":"t-1","status":"input_required","pollIntervalMs":1,"inputRequests":{`+
		`"a":{"method":"elicitation/create","params":{"mode":"url","url":"javascript:alert(1)"}},`+
		`"b":{"method":"elicitation/create","params":{"message":"`+strings.Repeat("x", 63<<10)+`","requestedSchema":{"type":"object","properties":{"p":{"type":"object"}}}}},`+
		`"c":{"method":"elicitation/create","params":{"message":"is it hunter2-hunter2?","requestedSchema":{"type":"object"}}}}}`)}
	server := s.Serve(t)
	server.Secrets = []string{"hunter2-hunter2"}
	var mu sync.Mutex
	var asked []string
	asker := &stages.Asker{Form: true, URL: true, Ask: func(_ context.Context, q stages.Question) (json.RawMessage, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, string(q.Params))
		return json.RawMessage(`{"action":"accept"}`), nil
	}}
	if got, err := callTask(t.Context(), staticPool(t, upstream.Options{}, server), stages.Call{Asker: asker}); err != nil || got != taskResult {
		t.Fatalf("got %q, %v", got, err)
	}
	if len(asked) != 1 || strings.Contains(asked[0], "hunter2") {
		t.Errorf("asked %q", asked)
	}
	if said := string(s.Requests("tasks/update")[0].Params.Inputs); said != `{"a":{"action":"cancel"},"b":{"action":"cancel"},"c":{"action":"accept"}}` {
		t.Errorf("the answers are %s", said)
	}
}

// TestTaskSignIn: where somebody signs in while a task is waited for, the call goes on with that task.
func TestTaskSignIn(t *testing.T) {
	s, kept := &mcptest.Tasks{Working: 1}, newLogins(t)
	s.Serve(t)
	served := httptest.NewUnstartedServer(s)
	served.Start()
	t.Cleanup(served.Close)
	d := (&doorman{refresh: "refresh-0", seen: map[string]int{}}).guard(served)
	s.Reply = func(r mcptest.TaskRequest) string {
		if r.Method == "tools/call" {
			d.lacks = "files:write" // the doorman waits for this reply
		}
		return ""
	}
	d.set("access-token-of-old", "")
	kept.put(t, d.login("access-token-of-old"))
	signIns := &pages{d: d, kept: kept, opened: make(chan struct{})}
	close(signIns.opened)
	e := d.endpoint(kept)
	p := staticPool(t, upstream.Options{SignIns: signIns}, upstream.Server{Name: "s", Dial: upstream.HTTP(e), Endpoint: &e})
	asker := &stages.Asker{URL: true, Ask: func(context.Context, stages.Question) (json.RawMessage, error) {
		return json.RawMessage(`{"action":"accept"}`), nil
	}}
	res, err := p.CallTool(t.Context(), stages.Call{
		Server: "s", Name: "work", Asker: asker, Task: &stages.Task{Keep: func(string) {}, Lasts: func() bool { return true }},
	})
	if err != nil || string(res.Data) != "done: {}" || len(s.Requests("tools/call")) != 1 || signIns.begun.Load() != 1 {
		t.Errorf("got %q, %v after %d calls and %d sign-ins", res.Data, err, len(s.Requests("tools/call")), signIns.begun.Load())
	}
}

// TestTaskWhole: a client that calls a tool by a name of its own gets the result of the task as the server has written it.
func TestTaskWhole(t *testing.T) {
	t.Parallel() // it waits
	for form, newer := range taskForms {
		t.Run(form, func(t *testing.T) {
			s := &mcptest.Tasks{Newer: newer, Working: 2}
			p := staticPool(t, upstream.Options{}, s.Serve(t))
			got, err := callTask(t.Context(), p, stages.Call{Whole: true})
			if want := `{"content":[{"type":"text","text":"done: {\"n\":1}"}]}`; err != nil || got != want {
				t.Errorf("got %s, %v", got, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s.Reply = func(r mcptest.TaskRequest) string {
				if r.Method == "tasks/get" {
					cancel()
				}
				return ""
			}
			if _, err := callTask(ctx, p, stages.Call{Whole: true}); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			s.Await(t, "tasks/cancel", 1)
		})
	}
}

// TestTaskHolds: nothing of what a server says of a task is held until the next request for it.
func TestTaskHolds(t *testing.T) {
	t.Parallel()
	for form, newer := range taskForms {
		t.Run(form, func(t *testing.T) {
			more := `,"statusMessage":"busy","pollInterval":60000,"pollIntervalMs":60000,"x":"` + strings.Repeat("x", 8<<20) + `"`
			s := &mcptest.Tasks{Newer: newer, Working: 1, Members: more}
			share := memory.New(1<<30).Share("results", 1<<30)
			p := staticPool(t, upstream.Options{Results: share}, s.Serve(t))
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			read := make(chan int64, 1)
			call := stages.Call{Progress: func(stages.ToolProgress) { read <- share.Used() }}
			all.Go(func() { _, _ = callTask(ctx, p, call) }) // it ends with ctx
			if n := <-read; n < 8<<20 {
				t.Errorf("the answer counts as %d bytes", n)
			}
			for limit := time.Now().Add(time.Minute); share.Used() > 4<<20; time.Sleep(time.Millisecond) {
				if time.Now().After(limit) {
					t.Errorf("%d bytes are held", share.Used())
					break
				}
			}
			cancel()
			all.Wait()
		})
	}
}

// TestTaskHandles: what is kept of a task does not go to a server with another address.
func TestTaskHandles(t *testing.T) {
	s := &mcptest.Tasks{}
	server := s.Serve(t)
	server.Identity = "one"
	var handle string
	if _, err := callTask(t.Context(), staticPool(t, upstream.Options{}, server), stages.Call{Task: &stages.Task{Keep: func(h string) { handle = h }}}); err != nil {
		t.Fatal(err)
	}
	before := len(s.Requests("tasks/get"))
	server.Identity = "two"
	p := staticPool(t, upstream.Options{}, server)
	for _, h := range []string{handle, "{", `{"id":"a\nb","server":"two"}`} {
		_, err := callTask(t.Context(), p, stages.Call{Task: &stages.Task{Handle: h}})
		wantError(t, err, stages.ToolError, "", "")
		if !errors.Is(err, stages.ErrNoTask) {
			t.Errorf("%s: got %v", h, err)
		}
	}
	if len(s.Requests("tasks/get")) != before {
		t.Error("another server was asked for the task")
	}
}

// TestTaskSize: the result of a task is bounded as any other, and nothing of it stays in memory.
func TestTaskSize(t *testing.T) {
	t.Parallel() // it waits
	for form, newer := range taskForms {
		for _, size := range []int{10 << 10, 8 << 20} {
			t.Run(fmt.Sprintf("%s, %d", form, size), func(t *testing.T) {
				result := `{"content":[{"type":"text","text":"` + strings.Repeat("x", size) + `"}]}`
				s := &mcptest.Tasks{Newer: newer, Reply: both(
					at("tasks/result", 0, result), at("tasks/get", 1, `{"taskId":"t-1","status":"completed","result":`+result+`}`),
				)}
				share := memory.New(1<<30).Share("results", 1<<30)
				p := staticPool(t, upstream.Options{ResultMax: 1 << 10, Results: share}, s.Serve(t))
				_, err := callTask(t.Context(), p, stages.Call{})
				wantError(t, err, stages.LimitExceeded, "", "limit result=SIZE")
				if err := p.Close(); err != nil || share.Used() != 0 {
					t.Errorf("%d bytes are taken at the end, %v", share.Used(), err)
				}
			})
		}
	}
}

// TestTaskSlots: a task is a call in flight until its end.
func TestTaskSlots(t *testing.T) {
	t.Parallel() // it waits
	s := &mcptest.Tasks{Working: 2}
	server := s.Serve(t)
	server.Concurrency = 1
	p := staticPool(t, upstream.Options{}, server)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if got, err := callTask(t.Context(), p, stages.Call{}); err != nil || got != taskResult {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	all.Wait()
	if order := s.Order("tools/call", "tasks/result"); strings.Count(order, "tools/call tasks/result") != 3 {
		t.Errorf("the requests were %s", order)
	}
}
