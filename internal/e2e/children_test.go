//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
)

// children are the servers that this binary can be.
var children = map[string]func(){
	"odd":    func() { odd().ServeStdio() },
	"issues": func() { issues().ServeStdio() },
	"slow":   func() { slow().ServeStdio() },
	"agent":  agent,
	"asking": asking,
	"ledger": func() { ledger().ServeStdio() },

	"patterns": func() { patterns().ServeStdio() },
	"refs":     func() { refs().ServeStdio() },
	"enums":    func() { enums().ServeStdio() },
	"many":     func() { manyTools().ServeStdio() },
	"boasting": boasting,
	"flood":    flood,
	"sessions": sessions,
}

// odd is a server whose tools answer with what a pipeline must survive.
func odd() *mcptest.Upstream {
	return mcptest.New(
		mcptest.Tool{Name: "bulk", ReadOnly: true, Raw: bulk},
		mcptest.Tool{Name: "raw", ReadOnly: true, Raw: raw},
		mcptest.Tool{Name: "get_item", ReadOnly: true, Do: func(args map[string]any) (string, error) { return fmt.Sprintf(`{"item":%v}`, args["n"]), nil }},
		mcptest.Tool{Name: "get_one", ReadOnly: true, Text: "1", Schema: `{"type":"object","properties":{"n":{}},"additionalProperties":false}`},
		mcptest.Tool{Name: "get_late", ReadOnly: true, Raw: late},
		mcptest.Tool{Name: "write", Destructive: true, Do: func(args map[string]any) (string, error) {
			path, _ := args["path"].(string)
			return "written", os.WriteFile(path, []byte("written"), 0o600)
		}},
	)
}

// bulk answers with one text of so many MB of JSON documents, a line each.
func bulk(_ context.Context, args json.RawMessage) (string, error) {
	var a struct{ MB int }
	if err := json.Unmarshal(args, &a); err != nil {
		return "", err
	}
	var lines strings.Builder
	for i := 0; lines.Len() < a.MB<<20; i++ {
		fmt.Fprintf(&lines, `{"id":%d,"text":"%s"}`+"\n", i, strings.Repeat("x", 80))
	}
	return textResult(lines.String())
}

func textResult(text string) (string, error) {
	result, err := json.Marshal(map[string]any{"content": []any{map[string]string{"type": "text", "text": text}}})
	return string(result), err
}

// raw answers with the result it is given, sent as it is, but that %FF is a byte that no text has.
func raw(_ context.Context, args json.RawMessage) (string, error) {
	var a struct{ Result string }
	if err := json.Unmarshal(args, &a); err != nil {
		return "", err
	}
	return strings.ReplaceAll(a.Result, "%FF", "\xff"), nil
}

// late answers at once, unless n is the one to wait at: then it says so in a file, and answers when the call ends.
func late(ctx context.Context, args json.RawMessage) (string, error) {
	var a struct {
		N    int
		At   int
		File string
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return "", err
	}
	if a.N != a.At {
		return textResult(fmt.Sprintf(`{"n":%d}`, a.N))
	}
	if err := os.WriteFile(a.File, nil, 0o600); err != nil {
		return "", err
	}
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(10 * time.Minute):
		return "", errors.New("nobody has ended the call")
	}
}

// addressVariable tells a child where to listen.
const addressVariable = "E2E_ADDRESS"

// sessions serves over HTTP, and answers a session that it does not know with 404 and the id of the request.
func sessions() {
	server := mcptest.New(mcptest.Tool{Name: "echo", Text: "hello"})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server.MCP() }, nil)
	var known sync.Map
	var begins sync.RWMutex // a client has its session before the handler returns
	err := http.ListenAndServe(os.Getenv(addressVariable), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("Mcp-Session-Id")
		if id == "" {
			begins.Lock()
			defer begins.Unlock()
			handler.ServeHTTP(w, r)
			known.Store(w.Header().Get("Mcp-Session-Id"), true)
			return
		}
		begins.RLock()
		_, ok := known.Load(id)
		begins.RUnlock()
		if !ok {
			var req struct{ ID json.RawMessage }
			_ = json.NewDecoder(r.Body).Decode(&req) // a GET has none
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found"},"id":%s}`, req.ID)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	fmt.Fprintln(os.Stderr, err)
}
