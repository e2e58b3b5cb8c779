//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

var gatewayTools = []string{"execute_pipeline", "get_tool_details", "list_all_tools", "list_available_shell_commands"}

// Every client runs these: one that is slow enough for progress, one that fails, one that ends in an image.
var clientPipelines = [][]object{
	{
		command("jq", "-n", "-c", "{ms: (1, 1, 1, 300)}"),
		{"type": "tool", "server": "demo", "name": "slow", "for_each": true, "concurrency": 1},
		command("jq", "-c", "map(.waited_ms)"),
	},
	{toolStage("demo", "get_customer", object{"id": "c-nobody"})},
	{toolStage("demo", "picture", object{})},
}

// A clientReply is what a client has of a call.
type clientReply struct {
	IsError bool `json:"isError"`
	Content []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		MIMEType string `json:"mimeType"`
		Data     string `json:"data"`
	} `json:"content"`
	Progress []float64 `json:"progress"`
}

func checkReplies(t *testing.T, replies []clientReply) {
	t.Helper()
	if len(replies) != len(clientPipelines) {
		t.Fatalf("got %d replies", len(replies))
	}
	good, bad, image := replies[0], replies[1], replies[2]
	if len(good.Content) != 2 || good.IsError || !strings.HasPrefix(good.Content[0].Text, "run r_") || good.Content[1].Text != "[1,1,1,300]\n" {
		t.Errorf("got %+v", good)
	}
	if len(good.Progress) == 0 || !slices.IsSorted(good.Progress) || good.Progress[len(good.Progress)-1] > 4 {
		t.Errorf("progress %v, want rising counts of at most 4 items", good.Progress)
	}
	if len(bad.Content) != 1 || !bad.IsError || !strings.HasPrefix(bad.Content[0].Text, "Stage 1 (tool demo/get_customer) failed: TOOL_ERROR\n") {
		t.Errorf("got %+v", bad)
	}
	if len(image.Content) != 2 || image.Content[1].Type != "image" || image.Content[1].MIMEType != "image/png" || !strings.HasPrefix(image.Content[1].Data, "iVBOR") {
		t.Errorf("got %+v", image)
	}
}

// TestNodeClients: by day a client of the older era has one transport, and TestRemoteBridge has the other.
func TestNodeClients(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ part, era, version, byDay string }{
		{"sdk", "legacy", "", "stdio"},
		{"client", "legacy", "2025-11-25", "HTTP"},
		{"client", "auto", "2026-07-28", "stdio, HTTP"},
	} {
		servers := object{"demo": object{"builtin": "demo", "concurrency": 1}}
		t.Run(c.part+" "+c.era+" stdio", func(t *testing.T) {
			if !strings.Contains(c.byDay, "stdio") && !parttest.Night() {
				t.Skip("for the night")
			}
			t.Parallel()
			nodeDir(t, "@modelcontextprotocol/"+c.part)
			p := mcsh(t, servers, "serve")
			nodeClient(t, p, c.part, c.era, encode(t, p.Args), c.version)
			until(t, "mcsh serve ends with its client", func() bool { return !alive(t, p.tmp) })
			if left, err := os.ReadDir(p.tmp); err != nil || len(left) > 0 {
				t.Errorf("temporary files are left: %v, %v", left, err)
			}
		})
		t.Run(c.part+" "+c.era+" HTTP", func(t *testing.T) {
			if !strings.Contains(c.byDay, "HTTP") && !parttest.Night() {
				t.Skip("for the night")
			}
			t.Parallel()
			nodeDir(t, "@modelcontextprotocol/"+c.part)
			p, url := serveHTTP(t, servers)
			nodeClient(t, p, c.part, c.era, url, c.version)
		})
	}
}

// pythonPath is the Python that has the SDK.
func pythonPath(t *testing.T) string {
	t.Helper()
	fetch := os.Getenv("MCSH_TEST_FETCH")
	if fetch == "" {
		parttest.Missing(t, "MCSH_TEST_FETCH does not name mcp-server-fetch, which comes with the SDK; .ci/run parts installs it")
	}
	return filepath.Join(filepath.Dir(fetch), "python")
}

// TestPythonClient: a client of the Python SDK that gives up calls hears nothing that it has to complain about. Over HTTP it
// does so at night.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	python := pythonPath(t)
	servers := object{"demo": object{"builtin": "demo", "concurrency": 1}}
	for name, target := range map[string]func(t *testing.T) (*process, string){
		"stdio": func(t *testing.T) (*process, string) {
			p := mcsh(t, servers, "serve")
			return p, encode(t, append([]string{"env", "TMPDIR=" + p.tmp, "MCSH_SANDBOX=local"}, p.Args...)) // it passes few variables on
		},
		"HTTP": func(t *testing.T) (*process, string) { return serveHTTP(t, servers) },
	} {
		if name == "HTTP" && !parttest.Night() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, address := target(t)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			client := exec.CommandContext(ctx, python, "client.py", address)
			client.Env = p.Env
			var stderr bytes.Buffer
			client.Stderr = &stderr
			out, err := client.Output()
			if want := "[{\"waited_ms\":1},\n{\"waited_ms\":2}]\n\n"; err != nil || string(out) != want {
				t.Errorf("got %q, %v, want %q", out, err, want)
			}
			for _, complaint := range []string{"Traceback", "ERROR:", "WARNING:"} {
				if strings.Contains(stderr.String(), complaint) {
					t.Errorf("the client complains: %s", &stderr)
				}
			}
		})
	}
}

// TestRemoteBridge: clients that know standard input and output only reach the gateway through a bridge of others.
func TestRemoteBridge(t *testing.T) {
	t.Parallel()
	bridge := nodeScript(t, "mcp-remote")
	p, url := serveHTTP(t, object{"demo": object{"builtin": "demo", "concurrency": 1}})
	p.Env = append(p.Env, "HOME="+t.TempDir()) // where it would keep who signed in
	nodeClient(t, p, "sdk", "legacy", encode(t, []string{"node", bridge, url, "--silent"}), "")
}

// alive reports whether a process knows a directory for temporary files.
func alive(t *testing.T, tmp string) bool {
	t.Helper()
	for pid := range processes(t) {
		if env, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ")); bytes.Contains(env, []byte(tmp)) {
			return true
		}
	}
	return false
}

// ownScript copies a script of this package, with those that it imports, to where it finds its packages.
func ownScript(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	err := os.Symlink(nodeDir(t), filepath.Join(dir, "node_modules"))
	for _, file := range []string{name, "connect.mjs"} {
		var text []byte
		if err == nil {
			text, err = os.ReadFile(file)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), text, 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// nodeClient runs client.mjs.
func nodeClient(t *testing.T, p *process, part, era, target, version string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	node := exec.CommandContext(ctx, "node", ownScript(t, "client.mjs"), part, era, target)
	node.Env, node.Dir = p.Env, p.Dir
	node.Stdin = strings.NewReader(encode(t, clientPipelines))
	var stderr bytes.Buffer
	node.Stderr = &stderr
	out, err := node.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	var got struct {
		Version string        `json:"version"`
		Tools   []string      `json:"tools"`
		Replies []clientReply `json:"replies"`

		Resource []struct{ Text string }
		Outcome  string
		Next     clientReply
		Errors   []string
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if diff := cmp.Diff(gatewayTools, got.Tools); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if version != "" && got.Version != version {
		t.Errorf("the protocol is %s, want %s", got.Version, version)
	}
	checkReplies(t, got.Replies)
	if len(got.Resource) != 1 || got.Resource[0].Text != "[1,1,1,300]\n" {
		t.Errorf("the output of the run as a resource: %+v", got.Resource)
	}
	if next := got.Next; !strings.Contains(got.Outcome, "enough") || next.IsError || len(next.Content) != 2 || !strings.Contains(next.Content[1].Text, "waited_ms") {
		t.Errorf("a call that is cancelled: %s; the next: %+v", got.Outcome, next)
	}
	for _, e := range got.Errors { // others come from a bridge that changes the order of messages
		if strings.Contains(e, "response") {
			t.Errorf("the client complains: %s", e)
		}
	}
}

func TestGoClient(t *testing.T) {
	t.Parallel()
	servers := object{"demo": object{"builtin": "demo"}}
	for _, version := range versions {
		t.Run(version+" stdio", func(t *testing.T) {
			t.Parallel()
			heard := &progress{}
			goClient(t, serveStdio(t, servers, version, heard.options()).ClientSession, version, heard)
		})
		t.Run(version+" HTTP", func(t *testing.T) {
			t.Parallel()
			_, url := serveHTTP(t, servers)
			heard := &progress{}
			goClient(t, connectHTTP(t, url, version, heard.options()), version, heard)
		})
	}
}

// progress is what a client has heard of one call.
type progress struct {
	mu   sync.Mutex
	done []float64
}

func (p *progress) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.done = append(p.done, req.Params.Progress)
	}}
}

func (p *progress) all() []float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.done)
}

func goClient(t *testing.T, session *mcp.ClientSession, version string, heard *progress) {
	t.Helper()
	if got := session.InitializeResult().ProtocolVersion; got != version {
		t.Errorf("the protocol is %s, want %s", got, version)
	}
	var replies []clientReply
	for i, pipeline := range clientPipelines {
		call := pipelineCall(pipeline)
		if i == 0 {
			call.SetProgressToken("token")
		}
		res, err := session.CallTool(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		text := encode(t, res)
		var reply clientReply
		if err := json.Unmarshal([]byte(text), &reply); err != nil {
			t.Fatal(err)
		}
		replies = append(replies, reply)
	}
	until(t, "progress", func() bool { return len(heard.all()) > 0 })
	replies[0].Progress = heard.all()
	checkReplies(t, replies)
}
