package stdio

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/servers/tool"
)

type builtinArgs struct {
	How string `json:"how"`
}

const builtinSchema = `{"type":"object","properties":{"how":{"type":"string"}},"required":["how"],"additionalProperties":false}`

// builtin makes a conversation serve a built-in server with the tool end, and its alias last. Its calls hang until they are cancelled,
// or end at once. direct counts the calls beside the SDK; nil: all go to it.
func builtin(t *testing.T, direct *atomic.Int64) func(*Options) {
	call := tool.NewInSession(func(ctx context.Context, s *mcp.ServerSession, a builtinArgs) (*mcp.CallToolResult, error) {
		switch a.How {
		case "hang":
			<-ctx.Done()
			return nil, ctx.Err()
		case "panic":
			panic("for a test")
		case "error":
			return nil, errors.New("no")
		case "json":
			return tool.JSON(map[string]any{"a": "<&>", "session": s.InitializeParams() != nil})
		}
		return tool.Text(a.How), nil
	})
	server, err := tool.Open(tool.Server{
		Name: "t", Title: "T", Aliases: map[string]string{"last": "end"},
		Tools: []tool.Tool{{Name: "end", Description: "Ends.", Input: builtinSchema, Annotations: tool.ReadOnly(false), Call: call}},
	})
	if err != nil {
		t.Fatal(err)
	}
	at := gateway.NewEndpoint(server.Server, gateway.HTTPOptions{})
	at.Answer(server.Info, server.Handlers, 0)
	return func(o *Options) {
		o.Server, o.Direct, o.Finish = server.Server, nil, at.Close
		if direct != nil {
			o.Direct = func(ctx context.Context, ss *mcp.ServerSession, message []byte) (*gateway.Call, *jsonrpc.Error) {
				call, fault := at.Direct(ctx, ss, message)
				if call != nil {
					direct.Add(1)
				}
				return call, fault
			}
		}
	}
}

func endCall(id, how string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"end","arguments":{"how":"` + how + `"}}}`
}

// An answer of a built-in server beside the SDK is the same as the SDK's.
func TestStdioBuiltinSame(t *testing.T) {
	call := endCall("7", "well")
	modern := strings.Replace(endCall("7", "json"), `"params":{`, `"params":{`+modernMeta, 1)
	late := strings.Replace(handshake, "2025-06-18", "2026-07-28", 1)
	for name, tt := range map[string]struct {
		first, then string
		direct      int64
	}{
		"a call":                  {handshake, call, 1},
		"of the future":           {late, call, 1},
		"JSON":                    {handshake, endCall("7", "json"), 1},
		"a panic":                 {handshake, endCall("7", "panic"), 1},
		"an error":                {handshake, endCall("7", "error"), 1},
		"an alias":                {handshake, strings.Replace(call, `"end"`, `"last"`, 1), 1},
		"no arguments":            {handshake, strings.Replace(call, `,"arguments":{"how":"well"}`, "", 1), 1},
		"arguments null":          {handshake, strings.Replace(call, `{"how":"well"}`, "null", 1), 1},
		"arguments array":         {handshake, strings.Replace(call, `{"how":"well"}`, "[]", 1), 0},
		"an unknown argument":     {handshake, strings.Replace(call, `"how"`, `"who"`, 1), 1},
		"an argument of a type":   {handshake, strings.Replace(call, `"well"`, "5", 1), 1},
		"progress":                {handshake, strings.Replace(call, `"params":{`, `"params":{"_meta":{"progressToken":1},`, 1), 1},
		"an unknown tool":         {handshake, strings.Replace(call, `"end"`, `"ends"`, 1), 0},
		"params of another type":  {handshake, strings.Replace(call, `"end"`, "5", 1), 0},
		"a method that it lacks":  {handshake, `{"jsonrpc":"2.0","id":7,"method":"resources/list"}`, 0},
		"without sessions":        {handshake, modern, 1},
		"without sessions, alone": {modern, modern, 1},
		"without a handshake":     {`{"jsonrpc":"2.0","id":1,"method":"ping"}`, call, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got [2]map[string]any
			for i := range got {
				synctest.Test(t, func(t *testing.T) {
					var calls *atomic.Int64
					if i == 1 {
						calls = new(atomic.Int64)
					}
					c := converse(t, false, builtin(t, calls))
					c.say(tt.first)
					c.answer()
					synctest.Wait() // until the first message is dealt with
					c.say(tt.then)
					got[i] = c.answer()
					if calls != nil && calls.Load() != tt.direct {
						t.Errorf("%d calls went beside the SDK, want %d", calls.Load(), tt.direct)
					}
				})
			}
			if diff := cmp.Diff(got[0], got[1]); diff != "" {
				t.Errorf("the SDK and we differ (-SDK +we):\n%s", diff)
			}
		})
	}
}

// A call of a built-in server is cancelled by its id, gets no answer, and ends no other. The rest ends with the server.
func TestStdioBuiltinEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := new(atomic.Int64)
		c := converse(t, false, builtin(t, calls))
		c.say(handshake)
		c.answer()
		synctest.Wait()
		c.say(endCall("3", "hang"), endCall("4", "hang"), cancel, endCall("5", "well"))
		if got := c.answer(); got["id"] != 5.0 {
			t.Errorf("got %v", got)
		}
		synctest.Wait()
		c.end()
		if got := c.answer(); got["id"] != 4.0 || !strings.Contains(fmt.Sprint(got), "Cancelled: ") {
			t.Errorf("got %v", got)
		}
		if err := <-c.served; err != nil || calls.Load() != 3 {
			t.Errorf("%d calls went beside the SDK; %v", calls.Load(), err)
		}
	})
}
