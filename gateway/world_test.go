package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/local"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestMain builds and starts the sandbox that the tests use, as it ships: without the race detector's weight.
func TestMain(m *testing.M) {
	mcptest.RunChild(childServers)
	parttest.Overlap(6)
	dir, err := os.MkdirTemp("", "mcsh-worker")
	if err != nil {
		panic(err)
	}
	if err := parttest.Build(dir, "cmd/mcsh-worker"); err != nil {
		panic(err)
	}
	workerBinary = filepath.Join(dir, "mcsh-worker")
	workers, workersErr = sandbox.New(context.Background(), sandbox.Options{Driver: local.New(local.Options{Worker: []string{workerBinary}})})
	code := m.Run()
	if workersErr == nil {
		workers.Close()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

var (
	workerBinary string
	workers      *sandbox.Pool // one for all tests: each start of a pool runs every program
	workersErr   error
)

// world is a gateway over a shop and an empty server, with the real sandbox, and an agent that is connected to it.
type world struct {
	shop    *mcptest.Upstream
	gateway *gateway.Gateway
	pool    *upstream.Pool
	agent   *mcp.ClientSession
}

const itemSchema = `{"type":"object","properties":{"id":{"type":"integer","minimum":1}},"required":["id"],"additionalProperties":false}`

func shopTools() []mcptest.Tool {
	return []mcptest.Tool{
		{
			Name: "list_orders", ReadOnly: true, Description: "Lists orders. More words.",
			Schema: `{"type":"object","properties":{"status":{"type":"string","enum":["open","closed"]},"limit":{"type":"integer","maximum":100}},"additionalProperties":false}`,
			Do: func(map[string]any) (string, error) {
				return `[{"id":1,"customer_id":9007199254740993,"total":3.50},{"id":2,"customer_id":7,"total":4}]`, nil
			},
		},
		{Name: "get_item", ReadOnly: true, Schema: itemSchema, Do: func(args map[string]any) (string, error) {
			if fmt.Sprint(args["id"]) == "13" {
				return "", fmt.Errorf("no item 13 in the shop")
			}
			return fmt.Sprintf(`{"id":%v,"name":"item %v"}`, args["id"], args["id"]), nil
		}},
		{Name: "slow", ReadOnly: true, Latency: time.Minute, Text: "late"},
		{Name: "delete_item", Destructive: true, Schema: itemSchema, Do: func(args map[string]any) (string, error) {
			return fmt.Sprintf("deleted %v", args["id"]), nil
		}},
		{Name: "picture", ReadOnly: true, Raw: func(context.Context, json.RawMessage) (string, error) {
			return `{"content":[{"type":"text","text":"a dot"},{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}]}`, nil
		}},
	}
}

func newWorld(t testing.TB, more ...mcptest.Tool) *world {
	t.Helper()
	return newWorldThat(t, nil, more...)
}

// newWorldThat is newWorld with a gateway that keeps runs in a store, if there is one.
func newWorldThat(t testing.TB, kept *runs.Store, more ...mcptest.Tool) *world {
	t.Helper()
	w := &world{shop: mcptest.New(append(shopTools(), more...)...)}
	w.pool = mcptest.Pool(t, map[string]*mcptest.Upstream{"shop": w.shop, "empty": mcptest.New()})
	w.gateway = gateway.New(gateway.Options{Upstream: w.pool, Sandbox: ready{sharedSandbox(t)}, Kept: kept, Version: "test"})
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		w.gateway.Close(ctx)
	})
	w.agent = connect(t, w.gateway, newClient())
	return w
}

// connect connects an agent to a gateway, until the end of the test.
func connect(t testing.TB, g *gateway.Gateway, agent *mcp.Client) *mcp.ClientSession {
	t.Helper()
	server, client := mcp.NewInMemoryTransports()
	if _, err := g.Server().Connect(t.Context(), server, nil); err != nil {
		t.Fatal(err)
	}
	session, err := agent.Connect(t.Context(), client, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

func newClient() *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
}

// ready is a pool that has started.
type ready struct{ *sandbox.Pool }

func (r ready) Describe() (sandbox.Report, error) { return r.Report(), nil }

// sharedSandbox returns the pool of real workers that all tests share, or skips the test where the machine cannot have one.
func sharedSandbox(t testing.TB) *sandbox.Pool {
	t.Helper()
	if workersErr != nil {
		parttest.Missing(t, "needs a Linux kernel with seccomp and Landlock for the local sandbox: %v", workersErr)
	}
	return workers
}

// call calls a tool of the gateway and returns the texts of its reply.
func (w *world) call(t testing.TB, name string, args any) (texts []string, result *mcp.CallToolResult) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	result, err = w.agent.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(raw)})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, c := range result.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	return texts, result
}

// execute runs a pipeline and returns the reply as one text.
func (w *world) execute(t testing.TB, pipeline string, more ...any) (string, *mcp.CallToolResult) {
	t.Helper()
	args := map[string]any{"pipeline": json.RawMessage(pipeline)}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	texts, result := w.call(t, "execute_pipeline", args)
	return strings.Join(texts, "\n--\n"), result
}

// output runs a pipeline and returns its output, without the note.
func (w *world) output(t testing.TB, pipeline string) (string, *mcp.CallToolResult) {
	t.Helper()
	texts, result := w.call(t, "execute_pipeline", map[string]any{"pipeline": json.RawMessage(pipeline)})
	return texts[len(texts)-1], result
}

var _ stages.Tools = (*upstream.Pool)(nil)
