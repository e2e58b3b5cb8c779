//go:build linux

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/internal/postgrestest"
)

// A realServer is one row of the matrix: a server of somebody else, how it is attached and a call that must work.
type realServer struct {
	name  string
	entry func(t *testing.T) object // of the configuration
	argv  string                    // what the command line of its process holds, if the gateway starts it
	lists []string                  // of its line of list_all_tools or below it

	golden []object // a pipeline whose tool stages name the server "real"
	want   string

	item  object // a stage that can be called many times, one item each
	items string // a jq program that makes the items
}

// real is how the pipelines of the matrix call the server.
const real = "real"

func realTool(name string, args object) object { return toolStage(real, name, args) }

// matrix are servers of five implementations of the protocol, over every transport.
var matrix = []realServer{
	everythingRow("everything over stdio", func(t *testing.T) object { return nodeServer(t, everything) }, "dist/index.js"),
	everythingRow("everything over HTTP", func(t *testing.T) object {
		return object{"url": everythingHTTP(t, "streamableHttp") + "/mcp"}
	}, ""),
	everythingRow("everything over declared SSE", func(t *testing.T) object {
		return object{"type": "sse", "url": everythingHTTP(t, "sse") + "/sse"}
	}, ""),
	everythingRow("everything over SSE that nobody declared", func(t *testing.T) object {
		return object{"url": everythingHTTP(t, "sse") + "/sse"}
	}, ""),
	{
		name: "filesystem", argv: "/server-filesystem/", lists: []string{"read_text_file", "directory_tree"},
		entry: func(t *testing.T) object {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return nodeServer(t, "@modelcontextprotocol/server-filesystem", dir)
		},
		golden: []object{
			realTool("list_allowed_directories", object{}), command("tail", "-n", "1"),
			command("jq", "-R", "{path: .}"), realTool("directory_tree", object{}), command("jq", "-c", "map(.name)"),
		},
		want: `["a.txt"]` + "\n",
		item: realTool("list_allowed_directories", object{}), items: "{}",
	},
	{
		name: "memory", argv: "/server-memory/", lists: []string{"create_entities!", "read_graph"},
		entry: func(t *testing.T) object {
			return with(nodeServer(t, "@modelcontextprotocol/server-memory"), "env",
				object{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.jsonl")})
		},
		golden: memoryGolden, want: `["Ada","person"]` + "\n",
		item: realTool("search_nodes", object{}), items: `{query: "Ada"}`,
	},
	{
		name: "sequential thinking", argv: "/server-sequential-thinking/", lists: []string{"sequentialthinking"},
		entry: func(t *testing.T) object { return nodeServer(t, "@modelcontextprotocol/server-sequential-thinking") },
		golden: []object{
			realTool("sequentialthinking", object{"thought": "so", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1}),
			command("jq", "-c", ".thoughtNumber"),
		},
		want: "1\n",
		item: realTool("sequentialthinking", object{"nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1}), items: `{thought: "x"}`,
	},
	dbhubRow(),
	postgresRow(),
	playwrightRow(),
	goRow("go-sdk everything over stdio", func(t *testing.T) object { return goServer(t, "gosdk-everything") }, "/gosdk-everything"),
	goRow("go-sdk everything over HTTP", func(t *testing.T) object {
		return object{"url": goHTTP(t, "gosdk-everything")}
	}, ""),
	{
		name: "go-sdk memory", argv: "/gosdk-memory", lists: []string{"create_entities!", "open_nodes"},
		entry:  func(t *testing.T) object { return goServer(t, "gosdk-memory") },
		golden: memoryGolden, want: `["Ada","person"]` + "\n",
		item: realTool("search_nodes", object{}), items: `{query: "Ada"}`,
	},
	{
		name: "go-sdk toolschemas", argv: "/gosdk-toolschemas", lists: []string{"manual greeting", "simple greeting"},
		entry:  func(t *testing.T) object { return goServer(t, "gosdk-toolschemas") },
		golden: []object{realTool("manual greeting", object{"name": "Ada"})}, want: `{"greeting":"Hi Ada"}`,
		item: realTool("simple greeting", object{}), items: `{name: "Ada"}`,
	},
	{
		name: "go-sdk sequential thinking", argv: "/gosdk-sequentialthinking", lists: []string{"start_thinking"},
		entry: func(t *testing.T) object { return goServer(t, "gosdk-sequentialthinking") },
		golden: []object{
			realTool("start_thinking", object{"problem": "what is 6 times 7", "sessionId": "s", "estimatedSteps": 2}),
			command("grep", "-c", "6 times 7"),
		},
		want: "1\n",
	},
	{
		name: "mcp-go everything", argv: "/mcpgo-everything", lists: []string{"echo!", "add!"},
		entry:  func(t *testing.T) object { return goServer(t, "mcpgo-everything") },
		golden: []object{realTool("add", object{"a": 2, "b": 40})}, want: "The sum of 2.000000 and 40.000000 is 42.000000.",
		item: realTool("echo", object{}), items: `{message: "hi"}`,
	},
}

// killedByDay are the servers that are killed by day.
var killedByDay = []string{"everything over stdio", "dbhub", "go-sdk everything over stdio", "mcp-go everything"}

func everythingRow(name string, entry func(t *testing.T) object, argv string) realServer {
	return realServer{
		name: name, entry: entry, argv: argv, lists: []string{"echo", "get-sum", "get-tiny-image"},
		golden: []object{
			command("jq", "-n", "-c", "{a: range(3), b: 10}"),
			with(realTool("get-sum", object{}), "for_each", true),
			command("jq", "-r", `.[] | split(" ")[-1]`),
		},
		want: "10.\n11.\n12.\n",
		item: realTool("echo", object{}), items: `{message: "hi"}`,
	}
}

func goRow(name string, entry func(t *testing.T) object, argv string) realServer {
	return realServer{
		name: name, entry: entry, argv: argv, lists: []string{"greet (structured)!(", "ping!("},
		golden: []object{realTool("greet (structured)", object{"name": "Ada"}), command("jq", "-c", ".")},
		want:   `{"message":"Hi Ada"}` + "\n",
		item:   realTool("greet", object{}), items: `{name: "Ada"}`,
	}
}

// memoryGolden writes to a graph and reads it back, in one pipeline.
var memoryGolden = []object{
	realTool("create_entities", object{"entities": []object{
		{"name": "Ada", "entityType": "person", "observations": []string{"wrote a program"}},
	}}),
	command("sed", "d"), // reads to the end, unlike jq -n
	realTool("read_graph", object{}),
	command("jq", "-c", ".entities[] | [.name, .entityType]"),
}

func dbhubRow() realServer {
	return realServer{
		name: "dbhub", argv: "@bytebase/dbhub", lists: []string{"execute_sql!", "search_objects"},
		entry: func(t *testing.T) object {
			return object{"command": parttest.Node(t), "args": []string{nodeScript(t, "@bytebase/dbhub"), "--transport", "stdio", "--demo"}}
		},
		golden: []object{
			realTool("execute_sql", object{"sql": "select 9007199254740993 as big, count(*) as n from employee"}),
			command("jq", "-c", ".data.statements[0].rows[0] | [.big, .n]"),
		},
		want: `["9007199254740993",1000]` + "\n",
		item: realTool("execute_sql", object{}), items: `{sql: "select 1 as one"}`,
	}
}

func postgresRow() realServer {
	return realServer{
		name: "postgres", argv: "/server-postgres/", lists: []string{"query"},
		entry: func(t *testing.T) object {
			return object{"command": "node", "args": []string{nodeScript(t, "@modelcontextprotocol/server-postgres"), postgrestest.New(t).URL("postgres")}}
		},
		golden: []object{
			realTool("query", object{"sql": "select generate_series(1, 3) as n, 9007199254740993::bigint as big"}),
			command("jq", "-c", `map([.n, .big])`),
		},
		want: `[[1,"9007199254740993"],[2,"9007199254740993"],[3,"9007199254740993"]]` + "\n",
		item: realTool("query", object{}), items: `{sql: "select 1 as one"}`,
	}
}

func playwrightRow() realServer {
	return realServer{
		name: "playwright", argv: "@playwright/mcp", lists: []string{"browser_navigate!", "browser_console_messages"},
		entry: playwright,
		golden: []object{
			realTool("browser_navigate", object{"url": "data:text/html,<title>shop</title><p>42 items</p>"}),
			command("grep", "-o", "Page Title: shop"),
		},
		want: "Page Title: shop\n",
	}
}

// TestMatrix attaches every server of the matrix to a gateway of its own: its tools are listed, a call works through a
// pipeline, and when it is killed under load the next pipeline works. A process or file that a server leaves behind
// fails the test. By day one server of each implementation is killed.
func TestMatrix(t *testing.T) {
	t.Parallel()
	for _, row := range matrix {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			loaded := make(chan struct{}, 50)
			g := serveStdio(t, object{real: row.entry(t)}, versions[1], &mcp.ClientOptions{
				ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) {
					select {
					case loaded <- struct{}{}:
					default: // one is enough
					}
				},
			})
			var listed string
			until(t, "the server has started", func() bool {
				listed = g.list(t)
				return !strings.Contains(listed, "## "+real+" (starting")
			})
			for _, want := range append(row.lists, "## "+real) {
				if !strings.Contains(listed, want) {
					t.Errorf("%q is not in the listing: %s", want, listed)
				}
			}
			row.call(t, g)
			if row.argv != "" && row.item != nil && (slices.Contains(killedByDay, row.name) || parttest.Night()) {
				row.killed(t, g, loaded)
			}
		})
	}
}

// list is what list_all_tools says.
func (g *gateway) list(t *testing.T) string {
	t.Helper()
	res, err := g.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_all_tools", Arguments: object{}})
	if err != nil || res.IsError {
		t.Fatalf("listing: %+v, %v", res, err)
	}
	return textOf(res)
}

func (row realServer) call(t *testing.T, g *gateway) {
	t.Helper()
	if diff := cmp.Diff(row.want, mustExecute(t, g.ClientSession, row.golden...)); diff != "" {
		t.Errorf("the golden call (-want +got):\n%s", diff)
	}
}

// allAnswered is the reply of a run whose calls have all been answered, with the note of a tool that may change things.
var allAnswered = regexp.MustCompile(`^([\w ]+!: 500 calls, 500 ok; run r_[a-z2-7]{26} \(q_[a-z2-7]{12} in logs\)\n)?500\n$`)

// killed kills the server while it answers calls: the run either had its answers or says what is wrong, and the
// server is started again for the next.
func (row realServer) killed(t *testing.T, g *gateway, loaded <-chan struct{}) {
	t.Helper()
	before := g.children(t, row.argv)
	if len(before) == 0 {
		t.Fatalf("no process of the gateway is called %s", row.argv)
	}
	load := with(with(row.item, "for_each", true), "concurrency", 8)
	call := pipelineCall([]object{command("jq", "-n", "-c", "range(500) | "+row.items), load, command("jq", "length")})
	call.SetProgressToken("load")
	reply := beginCall(t, g.ClientSession, call)
	<-loaded // some of the calls have been answered
	for _, pid := range before {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	text, failed := reply()
	switch {
	case !failed && !allAnswered.MatchString(text):
		t.Errorf("under load: got %q", text)
	case failed && (!strings.Contains(text, "SERVER_UNAVAILABLE") || !strings.Contains(text, "Try: ")):
		t.Errorf("the error does not say what happened and what to do: %s", text)
	}
	// All calls may have been answered before. Threads of a zombie may still hold its pipe open, so that the next call
	// would be written to it: the gateway has to have reaped it.
	until(t, "the gateway has reaped it", func() bool {
		return !slices.ContainsFunc(before, func(pid int) bool { return syscall.Kill(pid, 0) == nil })
	})
	row.call(t, g)
	if after := g.children(t, row.argv); len(after) == 0 || after[0] == before[0] {
		t.Errorf("the server was not started again: %v, then %v", before, after)
	}
}
