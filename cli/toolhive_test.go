package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap/zapcore"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/porttest"
	"github.com/mcsh-dev/mcsh/upstream/toolhive/toolhivetest"
)

// TestToolHive lists the tools of servers that ToolHive runs, with flags and variables as people set them.
func TestToolHive(t *testing.T) {
	t.Parallel() // it waits
	alpha := mcptest.New(mcptest.Tool{Name: "hi", Text: "alpha"}).HTTP(t, nil).URL + "/mcp"
	api := toolhivetest.New(t)
	api.SetToken("s3cret")
	api.Set(
		toolhivetest.Running("alpha", alpha+"#alpha", `"group":"tools"`, `"labels":{"team":"blue"}`),
		toolhivetest.Running("other", alpha, `"group":"rest"`),
		toolhivetest.Stuck("sick", "error", "no such image", `"group":"broken"`),
		toolhivetest.Running("demo", alpha, `"group":"demo"`),
	)
	home := t.TempDir()
	config := filepath.Join(home, "mcp.json")
	if err := os.WriteFile(config, []byte(`{"mcpServers": {"alpha": {"builtin": "demo"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(home, "state", "toolhive", "server")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	api.Rewrite(t, filepath.Join(state, "server.json"))
	auth := "--toolhive-api-header=Authorization: Bearer ${THV_TOKEN}"
	tests := []struct {
		name   string
		args   string
		env    string // variables, separated by spaces
		status int
		want   string // lines of stdout that begin with these, separated by spaces
		not    string // and one that may not be there
		stderr string // a part
	}{
		{"an address", "--toolhive=URL --toolhive-group=tools", "", 0, "alpha/hi fetch/", "other/", ""},
		{"everything", "--toolhive=URL --toolhive-group=!broken --no-builtin", "", 0, "alpha/hi other/hi demo/hi", "fetch/", ""},
		{"a variable", "--toolhive-name=al*", "MCSH_TOOLHIVE=URL", 0, "alpha/hi", "other/", ""},
		{"the variable of ToolHive", "--toolhive-label=team=blue", "TOOLHIVE_API_URL=URL", 0, "alpha/hi", "other/", ""},
		{"the port of ToolHive", "--toolhive-label=!team --toolhive-group=!broken", "TOOLHIVE_PORT=PORT", 0, "other/hi", "alpha/", ""},
		{"the host of ToolHive", "", "TOOLHIVE_HOST=127.0.0.9", 0, "fetch/", "alpha/", "ToolHive does not answer at http://127.0.0.9:8080 (TOOLHIVE_HOST)"},
		{"the discovery file", "", "XDG_STATE_HOME=HOME/state MCSH_TOOLHIVE_GROUP=tools,rest", 0, "alpha/hi other/hi fetch/", "sick", ""},
		{"a workload comes before a built-in server", "--toolhive=URL --toolhive-name=demo", "", 0, "demo/hi", "demo/list_orders", ""},
		{"and after one that is configured", "--toolhive=URL --toolhive-group=tools --config=" + config, "", 0, "alpha/list_orders", "alpha/hi", ""},
		{"one that ToolHive could not start", "--toolhive=URL --no-builtin", "", exitUnreachable, "alpha/hi", "sick", `"sick": ToolHive could not start it: no such image`},
		{"a variable against built-in servers", "--toolhive=URL --toolhive-group=tools", "MCSH_BUILTIN=off", 0, "alpha/hi", "fetch/", ""},
		{"a wrong value of it", "--toolhive=URL", "MCSH_BUILTIN=none", exitConfig, "", "/", "MCSH_BUILTIN=none: want on or off"},
		{"off", "--toolhive=off", "MCSH_TOOLHIVE=URL", 0, "fetch/", "alpha/", ""},
		{"nobody is there", "--toolhive=http://127.0.0.1:1", "", 0, "fetch/", "alpha/", "ToolHive does not answer at http://127.0.0.1:1 (--toolhive)"},
		{"a wrong address", "--toolhive=ftp://x", "", exitUsage, "", "/", "does not begin with http://, https:// or unix://"},
		{"a wrong glob", "--toolhive=URL --toolhive-group=[", "", exitUsage, "", "/", "is not a glob"},
		{"a header for no workload", "--toolhive=URL --toolhive-header=Authorization:x", "", exitUsage, "", "/", "want 'NAMES Header: value'"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fill := strings.NewReplacer("URL", api.URL, "PORT", strings.TrimPrefix(api.URL, "http://127.0.0.1:"), "HOME", home)
			args := append([]string{"tools", "ls", auth}, strings.Fields(strings.ReplaceAll(tt.args, "URL", api.URL))...)
			env := []string{"HOME=" + home, "THV_TOKEN=s3cret"}
			for _, entry := range strings.Fields(tt.env) {
				name, value, _ := strings.Cut(entry, "=")
				env = append(env, name+"="+fill.Replace(value))
			}
			var stdout, stderr bytes.Buffer
			status := run(context.Background(), args, strings.NewReader(""), &stdout, &stderr, env)
			if status != tt.status || !strings.Contains(stderr.String(), tt.stderr) || strings.Contains(stderr.String(), "s3cret") {
				t.Errorf("status %d, stderr:\n%s", status, stderr.String())
			}
			for _, want := range strings.Fields(tt.want) {
				if !strings.Contains("\n"+stdout.String(), "\n"+want) {
					t.Errorf("no %s in\n%s", want, stdout.String())
				}
			}
			if strings.Contains("\n"+stdout.String(), "\n"+tt.not) {
				t.Errorf("%s is in\n%s", tt.not, stdout.String())
			}
		})
	}
}

// TestHeaderFlags: what the flags for headers take. Values never stand in errors.
func TestHeaderFlags(t *testing.T) {
	p := &program{env: map[string]string{"TOKEN": "t0k3n", "BAD": "a\nb"}}
	tests := []struct{ text, want string }{
		{"Authorization: Bearer ${TOKEN}", "Bearer t0k3n"},
		{"Authorization:Bearer $TOKEN", "Bearer t0k3n"},
		{"Authorization: a$$b", "a$b"},
		{"Authorization: ${NONE}secret", "error: header Authorization: the variable NONE is not set"},
		{"Authorization: secret${BAD}", "error: header Authorization: its value cannot be sent"},
		{"secret", "error: want 'Header: value'"},
		{"no name: secret", "error: want 'Header: value'"},
	}
	for _, tt := range tests {
		into := map[string][]string{}
		got := ""
		if err := p.header(into, tt.text); err != nil {
			got = "error: " + err.Error()
		} else {
			got = strings.Join(into["Authorization"], "|")
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.text, got, tt.want)
		}
	}
}

// TestDoctorToolHive: the line of the doctor about ToolHive.
func TestDoctorToolHive(t *testing.T) {
	api := toolhivetest.New(t)
	api.Set(toolhivetest.Running("alpha", "http://127.0.0.1:1/mcp"), toolhivetest.Stuck("gone", "stopped", ""))
	tests := []struct {
		args, env string
		want      status
		text      string
	}{
		{"--toolhive=" + api.URL, "", statusOK, "v0.44.0 at " + api.URL + " (--toolhive): 2 workloads, 1 of them picked"},
		{"", "TOOLHIVE_API_URL=" + api.URL, statusOK, "(TOOLHIVE_API_URL)"},
		{"--toolhive=off", "", statusNote, "not looked for"},
		{"--toolhive=http://127.0.0.1:1", "", statusWarning, "refused"},
		{"--toolhive=nowhere", "", statusFailed, "does not begin with"},
	}
	for _, tt := range tests {
		var stdout, stderr bytes.Buffer
		args := []string{"doctor", "--json", "--sandbox=off"}
		if tt.args != "" {
			args = append(args, tt.args)
		}
		run(t.Context(), args, strings.NewReader(""), &stdout, &stderr, []string{"HOME=" + t.TempDir(), tt.env})
		var said doctorJSON
		if err := json.Unmarshal(stdout.Bytes(), &said); err != nil {
			t.Fatalf("%v: %s%s", err, stdout.String(), stderr.String())
		}
		i := slices.IndexFunc(said.Findings, func(f finding) bool { return f.Check == "toolhive" })
		if i < 0 || said.Findings[i].Status != tt.want || !strings.Contains(said.Findings[i].Text, tt.text) {
			t.Errorf("%s %s: %+v", tt.args, tt.env, said.Findings)
		}
	}
}

// TestDoctorGateway: a workload that is a gateway itself is the documented set-up, and nothing is wrong with it.
func TestDoctorGateway(t *testing.T) {
	other := gateway.New(gateway.Options{Upstream: mcptest.Pool(t, map[string]*mcptest.Upstream{}), Instance: "another"})
	served := httptest.NewServer(other.Handler())
	t.Cleanup(func() { served.CloseClientConnections(); served.Close() })
	api := toolhivetest.New(t)
	api.Set(toolhivetest.Running("mcsh", served.URL+"/mcp"), toolhivetest.Running("alpha", mcptest.New(mcptest.Tool{Name: "hi", Text: "alpha"}).HTTP(t, nil).URL+"/mcp"))
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), []string{"doctor", "--json", "--sandbox=off", "--toolhive", api.URL}, strings.NewReader(""), &stdout, &stderr, []string{"HOME=" + t.TempDir()})
	var said doctorJSON
	if err := json.Unmarshal(stdout.Bytes(), &said); err != nil || status != exitOK {
		t.Fatalf("status %d, %v: %s%s", status, err, stdout.String(), stderr.String())
	}
	var about []string
	for _, f := range said.Findings {
		if f.Status == statusFailed || f.Check == "servers" && strings.Contains(f.Text, "mcsh:") {
			about = append(about, string(f.Status)+" "+f.Text)
		}
		if strings.Contains(f.Text, "matches no tool") {
			t.Errorf("the default configuration complains about itself: %s", f.Text)
		}
	}
	if want := []string{"ok mcsh: a gateway such as this one; it is left out and not counted as a server"}; !slices.Equal(about, want) {
		t.Errorf("got %q, want %q", about, want)
	}
}

// TestServeFollowsToolHive serves a gateway that ToolHive lists too: it does not list itself, and workloads that come
// later are there without a restart.
func TestServeFollowsToolHive(t *testing.T) {
	t.Parallel() // it waits
	address := porttest.Free(t)
	server := mcptest.New(mcptest.Tool{Name: "hi", Text: "alpha"}).HTTP(t, nil).URL + "/mcp"
	api := toolhivetest.New(t)
	ourselves := toolhivetest.Running("ourselves", "http://"+address+"/mcp")
	api.Set(ourselves, toolhivetest.Running("alpha", server))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var stdout, stderr bytes.Buffer
	go func() {
		ended <- run(ctx, []string{"serve", "--listen", address, "--sandbox=off", "--no-builtin", "--toolhive", api.URL},
			strings.NewReader(""), &stdout, zapcore.Lock(zapcore.AddSync(&stderr)), []string{"HOME=" + t.TempDir()})
	}()
	session := connectWhenUp(t, "http://"+address+"/mcp")
	call := func(tool string, args map[string]any) string {
		t.Helper()
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil || len(res.Content) == 0 {
			t.Fatalf("%s: %v", tool, err)
		}
		return res.Content[0].(*mcp.TextContent).Text
	}
	if list := call("list_all_tools", nil); !strings.Contains(list, "alpha") || strings.Contains(list, "ourselves") {
		t.Errorf("the list:\n%s", list)
	}
	stage := map[string]any{"type": "tool", "server": "ourselves", "name": "execute_pipeline", "args": map[string]any{"pipeline": []any{}}}
	if text := call("execute_pipeline", map[string]any{"pipeline": []any{stage}}); !strings.Contains(text, "this gateway itself") {
		t.Errorf("a pipeline in a pipeline: %s", text)
	}
	api.Set(ourselves, toolhivetest.Running("alpha", server), toolhivetest.Running("beta", server))
	for end := time.Now().Add(time.Minute); !strings.Contains(call("list_all_tools", nil), "beta"); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the new workload was not seen")
		}
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	cancel()
	if status := <-ended; status != exitInterrupted && status != exitOK {
		t.Errorf("status %d: %s", status, stderr.String())
	}
}

// connectWhenUp connects to a gateway as soon as it listens.
func connectWhenUp(t *testing.T, url string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true}, nil)
		if err == nil {
			return session
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
