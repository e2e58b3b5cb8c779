//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/porttest"
)

const everything = "@modelcontextprotocol/server-everything"

// everythingHTTP starts server-everything with one of its transports over HTTP and returns its address.
func everythingHTTP(t *testing.T, transport string) string {
	t.Helper()
	return listens(t, func(address string) *exec.Cmd { return everythingAt(t, transport, address) })
}

func everythingAt(t *testing.T, transport, address string) *exec.Cmd {
	t.Helper()
	_, port, _ := strings.Cut(address, ":")
	cmd := exec.Command("node", nodeScript(t, everything), transport)
	cmd.Env = append(os.Environ(), "PORT="+port)
	return cmd
}

// listens starts a server on a free port of the loopback interface, for as long as the test, and returns its address
// when it answers there.
func listens(t *testing.T, command func(address string) *exec.Cmd) string {
	t.Helper()
	address := porttest.Free(t)
	listensAt(t, command(address), address)
	return "http://" + address
}

// listensAt starts a server for as long as the test, or until it is killed, and waits until it answers at an address.
func listensAt(t *testing.T, cmd *exec.Cmd, address string) (kill func()) {
	t.Helper()
	said := &output{}
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // it has no other end
		_ = cmd.Wait()
	})
	t.Cleanup(func() {
		kill()
		if t.Failed() {
			t.Logf("%s said: %s", cmd.Args[0], said)
		}
	})
	until(t, cmd.Args[0]+" answers", func() bool { return porttest.Answers(address) })
	return kill
}

// TestNodeServers runs pipelines over servers from npm, all of one configuration.
func TestNodeServers(t *testing.T) {
	t.Parallel()
	files, memory := t.TempDir(), filepath.Join(t.TempDir(), "memory.jsonl")
	for name, text := range map[string]string{"a.txt": "one\ntwo\n", "b.json": `{"id": 12345678901234567890}`} {
		if err := os.WriteFile(filepath.Join(files, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	servers := object{
		"everything": nodeServer(t, everything),
		"over HTTP":  object{"url": everythingHTTP(t, "streamableHttp") + "/mcp"},
		"files":      nodeServer(t, "@modelcontextprotocol/server-filesystem", files),
		"memory":     with(nodeServer(t, "@modelcontextprotocol/server-memory"), "env", object{"MEMORY_FILE_PATH": memory}),
		"thinking":   nodeServer(t, "@modelcontextprotocol/server-sequential-thinking"),
	}
	g := serveStdio(t, servers, versions[1], nil)
	entities := []object{{"name": "Ada", "entityType": "person", "observations": []string{"wrote a program"}}}
	type test struct {
		name     string
		pipeline []object
		want     string
	}
	tests := []test{
		{"several servers", []object{
			toolStage("files", "list_directory", object{"path": files}),
			command("grep", "-c", "FILE"),
			command("jq", "-c", "{a: ., b: 40}"),
			toolStage("over HTTP", "get-sum", object{}),
			toolStage("everything", "echo", object{}),
		}, "Echo: The sum of 2 and 40 is 42."},
		{"a file, unwrapped", []object{toolStage("files", "read_text_file", object{"path": files + "/a.txt"})}, "one\ntwo\n"},
		{"a number of many digits", []object{
			toolStage("files", "read_text_file", object{"path": files + "/b.json"}),
			command("jq", ".id"),
		}, "12345678901234567890\n"},
		{"a tree in a string", []object{
			toolStage("files", "directory_tree", object{"path": files}),
			command("jq", "-r", ".[].name"),
		}, "a.txt\nb.json\n"},
		{"several files", []object{
			toolStage("files", "list_directory", object{"path": files}),
			command("sed", "s|.* |"+files+"/|"),
			with(object{"type": "tool", "server": "files", "name": "read_text_file"}, "for_each", true),
			command("jq", "-c", "[.[] | tostring | length]"),
		}, "[8,27]\n"},
		{
			"created entities",
			[]object{toolStage("memory", "create_entities", object{"entities": entities})},
			`{"entities":[{"name":"Ada","entityType":"person","observations":["wrote a program"]}]}`,
		},
		{"the whole graph", []object{
			{"type": "tool", "server": "memory", "name": "read_graph"},
			command("jq", "-c", "[.entities[].name, (.relations | length)]"),
		}, "[\"Ada\",0]\n"},
		{"a thought", []object{
			toolStage("thinking", "sequentialthinking", object{"thought": "so", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1}),
			command("jq", "-c", "[.thoughtNumber, .thoughtHistoryLength]"),
		}, "[1,1]\n"},
	}
	for _, server := range []string{"everything", "over HTTP"} {
		tests = append(tests, test{server + ": echo of odd text", []object{toolStage(server, "echo", object{"message": "a\u0000b \U0001F600"})}, "Echo: a\u0000b \U0001F600"},
			test{server + ": structured", []object{
				toolStage(server, "get-structured-content", object{"location": "New York"}),
				command("jq", "-c", "keys"),
			}, `["conditions","humidity","temperature"]` + "\n"},
			test{server + ": sums", []object{
				command("jq", "-n", "-c", "{a: range(3), b: 10}"),
				with(object{"type": "tool", "server": server, "name": "get-sum"}, "for_each", true),
				command("jq", "-r", ".[] | split(\" \")[-1]"),
			}, "10.\n11.\n12.\n"},
			test{server + ": blocks within a pipeline", []object{
				toolStage(server, "get-tiny-image", object{}),
				command("grep", "-c", `"type":"image"`),
			}, "1\n"})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, mustExecute(t, g.ClientSession, test.pipeline...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, server := range []string{"everything", "over HTTP"} {
		t.Run(server+": an image", func(t *testing.T) { lastImage(t, g.ClientSession, server) })
		t.Run(server+": an error", func(t *testing.T) {
			text, failed := execute(t, g.ClientSession, toolStage(server, "get-sum", object{"a": "x"}))
			if !failed || !strings.Contains(text, "INVALID_ARGUMENTS") || !strings.Contains(text, "a must be a number, got \"x\"") {
				t.Errorf("got %q", text)
			}
		})
	}
}

// lastImage runs a pipeline that ends in an image, which arrives as one.
func lastImage(t *testing.T, session *mcp.ClientSession, server string) {
	t.Helper()
	res, err := session.CallTool(t.Context(), pipelineCall([]object{toolStage(server, "get-tiny-image", object{})}))
	if err != nil || res.IsError {
		t.Fatalf("%+v, %v", res, err)
	}
	var got []string
	for _, c := range res.Content {
		switch c := c.(type) {
		case *mcp.ImageContent:
			got = append(got, c.MIMEType+" "+string(c.Data[1:4]))
		case *mcp.TextContent:
			got = append(got, c.Text)
		}
	}
	want := []string{"Here's the image you requested:", "image/png PNG", "The image above is the MCP logo."}
	if diff := cmp.Diff(want, got[1:]); diff != "" { // behind the note
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWrapper has a server behind a shell that talks on standard output and stays above the server.
func TestWrapper(t *testing.T) {
	t.Parallel()
	t.Run("npm", func(t *testing.T) {
		t.Parallel()
		server := nodeServer(t, everything)
		wrapped := wrap(append([]string{"node"}, server["args"].([]string)...), nil)
		if got := must(t, object{"s": wrapped}, toolStage("s", "echo", object{"message": "hi"})); got != "Echo: hi" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("go", func(t *testing.T) {
		t.Parallel()
		server := child(t, "odd")
		wrapped := wrap([]string{server["command"].(string)}, server["env"])
		if got := must(t, object{"s": wrapped}, toolStage("s", "get_item", object{"n": 1})); got != `{"item":1}` {
			t.Errorf("got %q", got)
		}
	})
}

func wrap(argv []string, env any) object {
	script := `echo 'MCP server starting...'; echo '{"not": "a message"}'; echo; "$@"; echo ended >&2`
	entry := object{"command": "sh", "args": append([]string{"-c", script, "sh"}, argv...)}
	if env != nil {
		entry["env"] = env
	}
	return entry
}
