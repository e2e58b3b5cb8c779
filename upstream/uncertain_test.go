package upstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// bluntLine is what the blunt server reads in a line.
type bluntLine struct {
	ID     json.RawMessage
	Method string
	Result struct{ Action string }
	Params struct {
		Name string
		Meta struct{ ProgressToken json.RawMessage } `json:"_meta"`
	}
}

// blunt is a server of the older era whose questions name nothing. Its tool ask asks, hang says that it runs and never ends, and
// work is a task that ends after the next question.
func blunt() {
	var asking json.RawMessage // the id of the call
	task := `"taskId":"t","ttl":null,"pollInterval":1,"status":"%s"`
	status := "" // of the task that this process has begun
	result := func(id json.RawMessage, format string, args ...any) {
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{`+format+"}}\n", append([]any{id}, args...)...)
	}
	text := func(id json.RawMessage, words string) { result(id, `"content":[{"type":"text","text":%q}]`, words) }
	tools := map[string]func(bluntLine){
		"ask": func(m bluntLine) {
			asking = m.ID
			fmt.Println(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}}`)
		},
		"hang": func(m bluntLine) {
			fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`+"\n", m.Params.Meta.ProgressToken)
		},
		"work": func(m bluntLine) { status = "working"; result(m.ID, `"task":{`+task+`}`, status) },
	}
	methods := map[string]func(bluntLine){
		"": func(m bluntLine) {
			text(asking, m.Result.Action)
			if status != "" {
				status = "completed"
			}
		},
		"initialize": func(m bluntLine) {
			result(m.ID, `"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"blunt","version":"1"}`)
		},
		"tools/list": func(m bluntLine) {
			const schema = `"inputSchema":{"type":"object"}`
			result(m.ID, `"tools":[{"name":"ask",`+schema+`},{"name":"hang",`+schema+`},{"name":"work",`+schema+`,"execution":{"taskSupport":"required"}}]`)
		},
		"tools/call":   func(m bluntLine) { tools[m.Params.Name](m) },
		"tasks/get":    func(m bluntLine) { result(m.ID, task, status) },
		"tasks/result": func(m bluntLine) { text(m.ID, "done") },
		"ping":         func(m bluntLine) { result(m.ID, "") },
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var m bluntLine
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		if do := methods[m.Method]; do != nil {
			do(m)
		}
	}
}

// bluntPool has a blunt server, and a way to call its tool that asks: action is what became of the question.
func bluntPool(t *testing.T) (p *upstream.Pool, ask func(why string, a *stages.Asker, action string)) {
	p = staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Protocol: upstream.OnlyOlder, Dial: upstream.Stdio(mcptest.Child(t, "blunt"))})
	return p, func(why string, a *stages.Asker, action string) {
		t.Helper()
		res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "ask", Asker: a})
		if err != nil || string(res.Data) != action {
			t.Errorf("%s: the answer is %q, %v, want %q", why, res.Data, err, action)
		}
	}
}

// TestAskBesideLeftTask: a task that goes on after its wait declines no question of others, and is not lost.
func TestAskBesideLeftTask(t *testing.T) {
	t.Parallel()
	p, ask := bluntPool(t)
	who := (&person{}).asker("Ada")
	ask("before the task", who, "accept")
	ctx, cancel := context.WithCancel(t.Context())
	handle := ""
	_, err := p.CallTool(ctx, stages.Call{Server: "s", Name: "work", Asker: who, Task: &stages.Task{
		Keep:  func(h string) { handle = h; cancel() },
		Lasts: func() bool { return true },
	}})
	if err == nil || handle == "" {
		t.Fatalf("the wait ended with %v, and the task is %q", err, handle)
	}
	ask("beside the task", who, "accept")
	res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "work", Asker: who, Task: &stages.Task{Handle: handle}})
	if err != nil || string(res.Data) != "done" {
		t.Errorf("the task has the result %q, %v", res.Data, err)
	}
}

// TestAskAfterLeftCall: where a call was cancelled and the server has not answered it, one question is declined. The next call
// gets another session, though callers of another kind have been asked before.
func TestAskAfterLeftCall(t *testing.T) {
	t.Parallel()
	p, ask := bluntPool(t)
	one, two := (&person{}).asker("Ada"), (&person{}).asker("Bob")
	two.Sampling = true
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := p.CallTool(ctx, stages.Call{Server: "s", Name: "hang", Asker: two, Progress: func(stages.ToolProgress) { cancel() }}); err == nil {
		t.Fatal("the call has ended")
	}
	ask("of the first kind", one, "accept")
	ask("after the call", two, "cancel")
	ask("on another session", two, "accept")
}
