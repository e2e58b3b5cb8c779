//go:build linux

package e2e

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/porttest"
	"github.com/mcsh-dev/mcsh/upstream/toolhive/toolhivetest"
)

// runtimeFlags are the environment in which ToolHive starts a server that speaks streamable HTTP, and what else it says
// of a container. It gives no arguments, and the image keeps its user.
func runtimeFlags(port string) []string {
	return []string{
		"--restart=unless-stopped", "--env=MCP_TRANSPORT=streamable-http", "--env=MCP_HOST=127.0.0.1",
		"--env=MCP_PORT=" + port, "--env=FASTMCP_PORT=" + port,
	}
}

// TestImageBridge serves from a container with a network of its own, through a proxy as ToolHive has one in front.
func TestImageBridge(t *testing.T) {
	t.Parallel()
	image := projectImage(t)
	id := docked(t, append(runtimeFlags("8000"), "--publish=127.0.0.1::8000", image)...)
	shell(t, "docker", "start", id)
	var address string
	until(t, "the port is open and the gateway listens", func() bool {
		out, err := exec.Command("docker", "port", id, "8000").Output()
		address = strings.TrimSpace(string(out))
		return err == nil && address != "" && listening(id)
	})
	// The container's own address and its loopback, and nothing else.
	table := shell(t, "docker", "exec", id, "cat", "/proc/net/tcp")
	if !strings.Contains(table, "0100007F:1F40") || strings.Contains(table, "00000000:1F40") || strings.Count(table, ":1F40 00000000:0000 0A") != 2 {
		t.Errorf("it listens on other addresses than its own and the loopback:\n%s", table)
	}
	proxy := inFront(t, address)
	wantHealthy(t, proxy)
	wantSorted(t, connectHTTP(t, proxy+"/mcp", versions[1], nil))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{"mcsh": 200, "host.docker.internal:8000": 200, "evil.example": 403} {
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("under the name %s: %s, want %d", host, resp.Status, want)
		}
	}
	wantHidden(t, id)
}

// TestImageHost serves from a container with the machine's network, finds two real servers through ToolHive's API, and
// runs a pipeline over both.
func TestImageHost(t *testing.T) {
	t.Parallel()
	image := projectImage(t)
	api := toolhivetest.New(t)
	api.Set(
		toolhivetest.Running("people", goHTTP(t, "gosdk-everything"), `"group":"tools"`),
		toolhivetest.Running("graph", goHTTP(t, "gosdk-memory"), `"group":"tools"`),
	)
	address := porttest.Free(t)
	_, port, _ := net.SplitHostPort(address)
	id := docked(t, append(runtimeFlags(port), "--network=host", "--env=TOOLHIVE_API_URL="+api.URL, "--env=MCSH_TOOLHIVE_GROUP=tools", image)...)
	shell(t, "docker", "start", id)
	until(t, "the gateway listens", func() bool { return listening(id) })
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	own := ":" + strings.ToUpper(strconv.FormatUint(0x10000+number, 16)[1:])
	if table := shell(t, "docker", "exec", id, "cat", "/proc/net/tcp"); !strings.Contains(table, "0100007F"+own+" 00000000:0000 0A") || strings.Count(table, own+" 00000000:0000 0A") != 1 {
		t.Errorf("on the machine's network it listens beyond the loopback:\n%s", table)
	}
	proxy := inFront(t, address)
	wantHealthy(t, proxy)
	session := connectHTTP(t, proxy+"/mcp", versions[1], nil)
	wantTools(t, session)
	names := object{"entities": []object{{"name": "Ada", "entityType": "person", "observations": []string{"counts"}}}}
	mustExecute(t, session, toolStage("graph", "create_entities", names))
	text := mustExecute(t, session,
		toolStage("graph", "read_graph", object{}),
		command("jq", "-c", ".entities[] | {name}"),
		with(toolStage("people", "greet", object{}), "for_each", true),
		command("grep", "-o", "Ada"))
	if !strings.HasSuffix(text, "Ada\n") {
		t.Errorf("got %q", text)
	}
}

// wantTools compares the tools with those that the entry for ToolHive's registry names.
func wantTools(t *testing.T, session *mcp.ClientSession) {
	t.Helper()
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tool := range list.Tools {
		got = append(got, tool.Name)
	}
	slices.Sort(got)
	data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "toolhive", "server.json"))
	if err != nil {
		t.Fatal(err)
	}
	var entry struct {
		Meta map[string]map[string]map[string]struct{ Tools []string } `json:"_meta"`
	}
	if err := json.Unmarshal(data, &entry); err != nil {
		t.Fatal(err)
	}
	for _, extras := range entry.Meta["io.modelcontextprotocol.registry/publisher-provided"]["io.github.stacklok"] {
		if !slices.Equal(got, extras.Tools) {
			t.Errorf("the registry names the tools %q, want %q", extras.Tools, got)
		}
	}
}

// listening reports whether the gateway of a container says that it listens.
func listening(id string) bool {
	logs, _ := exec.Command("docker", "logs", id).CombinedOutput() // they are empty before
	return strings.Contains(string(logs), " listens on ")
}

// inFront is a proxy before an address.
func inFront(t *testing.T, address string) string {
	t.Helper()
	proxy := httptest.NewServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address}))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// wantHealthy asks as ToolHive's proxy does: any answer from 200 to 499 will do.
func wantHealthy(t *testing.T, address string) {
	t.Helper()
	resp, err := http.Get(address + "/")
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode < 200 || resp.StatusCode > 499 {
		t.Errorf("GET / gives %s", resp.Status)
	}
}
