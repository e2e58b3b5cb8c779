package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/state"
)

// recordedTool is a tool of a real server, and one of its results where there is one.
type recordedTool struct {
	Name, Description string
	ReadOnly          bool
	OutputSchema      json.RawMessage
	Result            json.RawMessage
}

// recordedServers are 15 real servers with their 304 tools.
func recordedServers(t testing.TB) (servers map[string]*mcptest.Upstream, results map[string][]string) {
	t.Helper()
	recorded := map[string][]recordedTool{}
	readJSON(t, "testdata/recorded_tools.json", &recorded)
	servers, results = map[string]*mcptest.Upstream{}, map[string][]string{}
	n := 0
	for server, tools := range recorded {
		var inputs []struct {
			Name        string
			InputSchema json.RawMessage
		}
		readJSON(t, filepath.Join("..", "schemas", "testdata", "tools", server+".json"), &inputs)
		input := map[string]string{}
		for _, in := range inputs {
			input[in.Name] = string(in.InputSchema)
		}
		var list []mcptest.Tool
		for _, r := range tools {
			result := string(r.Result)
			list = append(list, mcptest.Tool{
				Name: r.Name, Description: r.Description, ReadOnly: r.ReadOnly, Schema: input[r.Name], OutputSchema: string(r.OutputSchema),
				Raw: func(context.Context, json.RawMessage) (string, error) {
					if result == "" {
						return "", errors.New("nothing is recorded")
					}
					return result, nil
				},
			})
			if n++; result != "" {
				results[server] = append(results[server], r.Name)
			}
		}
		servers[server] = mcptest.New(list...)
	}
	if n != 304 || len(servers) != 15 {
		t.Fatalf("%d tools of %d servers", n, len(servers))
	}
	return servers, results
}

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// agentOf connects an agent to a gateway over a pool.
func agentOf(t *testing.T, pool *upstream.Pool) *world {
	t.Helper()
	w := &world{pool: pool, gateway: gateway.New(gateway.Options{Upstream: pool, Version: "test"})}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		w.gateway.Close(ctx)
	})
	w.agent = connect(t, w.gateway, newClient())
	return w
}

// list calls list_all_tools.
func (w *world) list(t *testing.T, args map[string]any) string {
	t.Helper()
	texts, result := w.call(t, "list_all_tools", args)
	if result.IsError {
		t.Fatalf("%v: %s", args, texts)
	}
	return texts[0]
}

// TestManyTools: 304 tools in all forms, within what an agent can read.
func TestManyTools(t *testing.T) {
	servers, results := recordedServers(t)
	w := agentOf(t, mcptest.Pool(t, servers))
	all := w.list(t, map[string]any{"detail": "brief"})
	bare := regexp.MustCompile(` -> .*`).ReplaceAllString(all, "") // output schemas tell some shapes at once
	sizes := map[string]int{"brief": utf8.RuneCountInString(bare), "overview": utf8.RuneCountInString(w.list(t, nil)), "names": utf8.RuneCountInString(w.list(t, map[string]any{"detail": "names"}))}
	for server, tools := range results {
		for _, tool := range tools {
			if tool == "simulate-research-query" {
				continue // wants to be a task
			}
			if _, err := w.pool.CallTool(t.Context(), stages.Call{Server: server, Name: tool}); err != nil {
				t.Errorf("%s/%s: %v", server, tool, err)
			}
		}
	}
	sizes["with shapes"] = utf8.RuneCountInString(w.list(t, map[string]any{"detail": "brief"}))
	t.Logf("characters: %v", sizes)
	for form, most := range map[string]int{"brief": 42_000, "with shapes": 52_000, "names": 7_000, "overview": 8_000} {
		if sizes[form] > most {
			t.Errorf("%s: %d characters, more than %d", form, sizes[form], most)
		}
	}
	if n := strings.Count(all, "\n"); n < 304+15 {
		t.Errorf("%d lines", n)
	}
	overview := w.list(t, nil)
	for _, want := range []string{
		"create_issue!", "## grafana\nadd_activity_to_incident!", // names, with their marks
		"query!(sql?: str)", "resolve-library-id(", // small servers in brief
		"ask again with server (one or several) or query",
	} {
		if !strings.Contains(overview, want) {
			t.Errorf("the overview lacks %q:\n%s", want, overview)
		}
	}
}

// TestListPages: pages of the list hold every tool once, in order.
func TestListPages(t *testing.T) {
	t.Parallel()
	servers, _ := recordedServers(t)
	w := agentOf(t, mcptest.Pool(t, servers))
	whole := w.list(t, map[string]any{"detail": "names"})
	next := regexp.MustCompile(`for more: cursor "(\d+)"`)
	for _, args := range []map[string]any{{"detail": "names", "limit": 100}, {"detail": "brief", "limit": 7}, {"detail": "full"}, {"limit": 50}} {
		seen, pages, cursor := 0, 0, ""
		for {
			args["cursor"] = cursor
			text := w.list(t, args)
			pages++
			m := next.FindStringSubmatch(text)
			if m == nil {
				break
			}
			var at int
			fmt.Sscan(m[1], &at)
			if at <= seen || pages > 100 {
				t.Fatalf("%v: from %d to %d", args, seen, at)
			}
			seen, cursor = at, m[1]
		}
		if pages < 3 {
			t.Errorf("%v: %d pages", args, pages)
		}
	}
	if n := strings.Count(whole, "## "); n != 15 {
		t.Errorf("%d servers in:\n%s", n, whole)
	}
	if text := w.list(t, map[string]any{"cursor": "304"}); strings.Contains(text, "(") {
		t.Errorf("behind the end: %s", text)
	}
}

// TestListQuery: the best tools come first, from all servers or from some.
func TestListQuery(t *testing.T) {
	servers, _ := recordedServers(t)
	w := agentOf(t, mcptest.Pool(t, servers))
	for _, c := range []struct{ query, server, best string }{
		{"create a github issue", "", "github/create_issue!("},
		{"take screenshot", "playwright", "playwright/browser_take_screenshot"},
		{"commit changes", "git", "git/git_commit"},
		{"console messages", "chromedt", "chromedt/get_console_message"},
		{"kubernetes pods log", "", "k8s/"},
	} {
		args := map[string]any{"query": c.query}
		if c.server != "" {
			args["server"] = c.server
		}
		text := w.list(t, args)
		if !strings.HasPrefix(text, c.best) || strings.Count(text, "\n") > 17 {
			t.Errorf("%s: got\n%s", c.query, text)
		}
	}
	if text := w.list(t, map[string]any{"query": "zzzebra"}); !strings.Contains(text, `No tool has a word of "zzzebra"`) {
		t.Errorf("got %s", text)
	}
	if text := w.list(t, map[string]any{"query": "issue", "limit": 2}); strings.Count(text, "issue") < 2 || strings.Count(text, "\n") != 4 || !strings.Contains(text, `cursor "2"`) {
		t.Errorf("got %s", text)
	}
	several := w.list(t, map[string]any{"server": []string{"postgres", "context7"}})
	if strings.Count(several, "## ") != 2 || !strings.Contains(several, "query!(sql?: str)") {
		t.Errorf("got %s", several)
	}
}

// TestListArguments: mistakes say what to give instead.
func TestListArguments(t *testing.T) {
	w := newWorld(t)
	for args, want := range map[string]string{
		`{"detail":"all"}`: "give names, brief or full", `{"limit":-1}`: "limit is -1", `{"cursor":"x"}`: "the cursor of the last answer",
		`{"cursor":"-5"}`: "the cursor of the last answer", `{"limit":"7"}`: "wrong type", `{"querry":"x"}`: `did you mean "query"?`,
	} {
		texts, result := w.call(t, "list_all_tools", json.RawMessage(args))
		if !result.IsError || !strings.Contains(texts[0], want) {
			t.Errorf("%s: got %s", args, texts[0])
		}
	}
}

// TestListTrouble: servers that do not work are named with the reason, and so are lists that are not whole.
func TestListTrouble(t *testing.T) {
	dead := func(context.Context) (mcp.Transport, error) { return nil, errors.New("no such program") }
	good := mcptest.New(mcptest.Tool{Name: "hi", Description: "Says hi.", ReadOnly: true, OutputSchema: `{"type":"object","properties":{"n":{"type":"integer"}}}`})
	w := agentOf(t, mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: "dead", Dial: dead}, {Name: "good", Dial: good.Dial}}}}))
	for _, args := range []map[string]any{nil, {"detail": "brief"}, {"query": "hi"}} {
		text := w.list(t, args)
		if !strings.Contains(text, "dead (failed: ") || !strings.Contains(text, "no such program") || !strings.Contains(text, "hi() - Says hi -> {n?: int}\n") {
			t.Errorf("%v: got %s", args, text)
		}
	}
}

// TestQueryNamesUnanswered: a query names in one line the servers that do not answer, also those whose tools are known from
// before.
func TestQueryNamesUnanswered(t *testing.T) {
	kept := t.TempDir()
	good := mcptest.New(mcptest.Tool{Name: "hi", Description: "Says hi.", ReadOnly: true})
	dead := func(context.Context) (mcp.Transport, error) { return nil, errors.New("no such program") }
	pool := func(dial func(context.Context) (mcp.Transport, error)) *upstream.Pool {
		dir, err := state.Open(kept)
		if err != nil {
			t.Fatal(err)
		}
		return mcptest.NewPool(t, upstream.Options{State: dir, Sources: []upstream.Source{upstream.Static{
			{Name: "dead", Dial: dead}, {Name: "good", Dial: dial, Identity: "hi"},
		}}})
	}
	agentOf(t, pool(good.Dial)).list(t, nil)
	w := agentOf(t, pool(dead))
	eventually(t, "the query names both", func() bool {
		text := w.list(t, map[string]any{"query": "hi"})
		line, rest, _ := strings.Cut(text, "\n")
		return line == `note: no answer from dead (failed: server "dead": no such program); good (failed: server "good": no such program)` &&
			strings.HasPrefix(rest, "good/hi() - Says hi\n")
	})
}

// TestShapesAreListed: what a tool returned once is what the next agent reads before its first call.
func TestShapesAreListed(t *testing.T) {
	w := newWorld(t)
	w.execute(t, `[{"type":"tool","server":"shop","name":"list_orders"}]`)
	want := `list_orders(status?: "open"|"closed", limit?: int ≤ 100) - Lists orders. More words -> [{id: int, customer_id: int, total: num}]`
	eventually(t, "the shape is in the list", func() bool { return strings.Contains(w.list(t, nil), want) })
	texts, _ := w.call(t, "get_tool_details", map[string]any{"server": "shop", "tool_name": "list_orders"})
	if !strings.Contains(texts[0], "Returns: [{id: int, customer_id: int, total: num}] (as seen in 1 call)") {
		t.Errorf("got %s", texts[0])
	}
}

// TestManyMoreTools: thousands of tools, with long names, fit an overview too.
func TestManyMoreTools(t *testing.T) {
	t.Parallel()
	servers := map[string]*mcptest.Upstream{}
	for i := range 30 {
		var tools []mcptest.Tool
		for j := range 100 {
			tools = append(tools, mcptest.Tool{Name: fmt.Sprintf("tool_with_a_long_name_%d", j)})
		}
		servers[fmt.Sprintf("server%02d", i)] = mcptest.New(tools...)
	}
	w := agentOf(t, mcptest.Pool(t, servers))
	text := w.list(t, nil)
	if n := utf8.RuneCountInString(text); n > 8000 || strings.Count(text, "## server") != 30 || strings.Count(text, "… 100 tools") != 30 {
		t.Errorf("%d characters:\n%s", n, text)
	}
	if n := utf8.RuneCountInString(w.list(t, map[string]any{"detail": "full"})); n > 64_000 || n < 50_000 {
		t.Errorf("a page has %d characters", n)
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !so() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestSearchFollows: many callers search at once, and a tool that has changed is found by its new words alone.
func TestSearchFollows(t *testing.T) {
	shop := mcptest.New(mcptest.Tool{Name: "find", Description: "Looks up parcels."})
	pool := mcptest.Pool(t, map[string]*mcptest.Upstream{"shop": shop})
	finds := func(words string) bool { return len(gateway.Search(pool.Catalog(t.Context()), words)) == 1 }
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if !finds("parcel") {
				t.Error("the tool is not found")
			}
		})
	}
	all.Wait()
	shop.Add(mcptest.Tool{Name: "find", Description: "Looks up invoices."})
	eventually(t, "the tool is found by its new words", func() bool { return finds("invoice") })
	if finds("parcel") {
		t.Error("the tool is found by its old words")
	}
}
