//go:build linux

package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/conformancetest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/servers"
	"github.com/mcsh-dev/mcsh/servers/servertest"
)

// through returns the address of a proxy that adds a token to requests: the suites have none.
func through(t *testing.T, address, token string) string {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{
		FlushInterval: -1, // events must not wait
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: to.Scheme, Host: to.Host})
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// An answer that comes before the proxy has read the end of the request would be cut off: net/http closes the body then.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { proxy.CloseClientConnections(); proxy.Close() })
	return proxy.URL + "/mcp"
}

// TestBuiltinConformance runs the official suite against each built-in server alone: by day against the first, whose answers
// come from the same place.
func TestBuiltinConformance(t *testing.T) {
	t.Parallel()
	var expected []byte
	for _, file := range []string{"conformance.yml", "conformance_builtins.yml"} {
		part, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		expected = append(expected, part...)
	}
	baseline := filepath.Join(t.TempDir(), "expected.yml")
	if err := os.WriteFile(baseline, expected, 0o600); err != nil {
		t.Fatal(err)
	}
	builtins := servers.Builtins()
	for _, b := range builtins[:parttest.Times(1, len(builtins))] {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, b.Name, servertest.Sessions(t, b.Name)[0])
			_, address, token := builtinHTTP(t, j.Dir, j.args()...)
			address = through(t, address, token)
			conformancetest.Run{Revision: versions[0], Baseline: baseline, Also: []string{"server-session-lifecycle"}}.Server(t, address)
			conformancetest.Run{Revision: versions[1], Baseline: baseline, Also: []string{"http-header-validation"}}.Server(t, address)
		})
	}
}

// TestBuiltinInspector lets the protocol's own inspector list the tools of each built-in server, and call one of them. By day
// only the first one is called, and all are inspected over stdio.
func TestBuiltinInspector(t *testing.T) {
	t.Parallel()
	for i, b := range servers.Builtins() {
		session := servertest.Sessions(t, b.Name)[0]
		for transport, target := range map[string]func(t *testing.T, j job) []string{"stdio": inspectorConfig, "HTTP": inspectorURL} {
			if transport == "HTTP" && !parttest.Night() {
				continue
			}
			t.Run(b.Name+" over "+transport, func(t *testing.T) {
				t.Parallel()
				j := newJob(t, b.Name, session)
				p, args := program(t, j.Dir), target(t, j)
				var want, names []string
				for _, c := range j.Calls {
					want = append(want, c.Tool)
				}
				for _, tool := range inspect(t, p, append(args, "--method", "tools/list", "--strict")).Tools {
					names = append(names, tool.Name)
				}
				slices.Sort(want)
				slices.Sort(names)
				if diff := cmp.Diff(slices.Compact(want), names); diff != "" {
					t.Errorf("tools (-want +got):\n%s", diff)
				}
				if i > 0 && !parttest.Night() {
					return
				}
				call := j.Calls[0]
				called := inspect(t, p, append(args, "--method", "tools/call", "--tool-name", call.Tool, "--tool-args-json", string(call.Args)))
				if diff := cmp.Diff(decoded(t, session.Calls[0].Result), decoded(t, shownResult(t, j.place.Shown(string(called.raw))))); diff != "" {
					t.Errorf("%s (-want +got):\n%s", call.Tool, diff)
				}
			})
		}
	}
}

// inspectorConfig are the arguments of the inspector for a server that it starts.
func inspectorConfig(t *testing.T, j job) []string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "inspector.json")
	entry := object{"command": mcshPath(), "args": j.args(), "cwd": j.Dir, "env": object{"MCSH_SANDBOX": "local", "TZ": "UTC"}}
	if err := os.WriteFile(config, []byte(encode(t, object{"mcpServers": object{j.server: entry}})), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--config", config, "--server", j.server}
}

// inspectorURL are those for a server that listens.
func inspectorURL(t *testing.T, j job) []string {
	t.Helper()
	_, address, token := builtinHTTP(t, j.Dir, j.args()...)
	return []string{address, "--transport", "http", "--header", "Authorization: Bearer " + token}
}

// TestBuiltinCallers: a built-in server that writes serves nobody over HTTP who does not authenticate.
func TestBuiltinCallers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, args := range [][]string{nil, {"--no-auth"}, {"--multi", "--allow-root", dir}, {"--reference", dir}} {
		why := "there is no authentication"
		if slices.Contains(args, "--no-auth") {
			why = "--no-auth is only for servers that change nothing"
		}
		r := program(t, dir, append([]string{"server", "filesystem", "--listen", "127.0.0.1:0"}, args...)...).run(t)
		if r.status != 1 || !strings.Contains(r.stderr, why) || !strings.Contains(r.stderr, "--tokens FILE") {
			t.Errorf("%v: exit status %d: %s", args, r.status, r.stderr)
		}
	}
	_, address, token := builtinHTTP(t, dir, "server", "filesystem")
	if w, text := request(t, http.MethodPost, address, "", initialize); w.StatusCode != http.StatusUnauthorized || !strings.Contains(text, "wants to know who you are") {
		t.Errorf("without a token: %d, %s", w.StatusCode, text)
	}
	if w, _ := request(t, http.MethodGet, strings.TrimSuffix(address, "/mcp")+"/healthz", "", ""); w.StatusCode != http.StatusOK {
		t.Errorf("healthz: %d", w.StatusCode)
	}
	for _, version := range versions {
		session := connectAs(t, address, token, version)
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "create_file", Arguments: object{"path": version, "content": ""}})
		if err != nil || res.IsError {
			t.Errorf("%s: %+v, %v", version, res, err)
		}
	}
}
