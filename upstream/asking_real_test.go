package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/internal/porttest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/toollist"
)

// everything is the entry of server-everything, an npm package.
func everything(t *testing.T) (program, script string) {
	t.Helper()
	const name = "@modelcontextprotocol/server-everything"
	return "node", filepath.Join(parttest.Packages(t, name), name, "dist", "index.js")
}

// everythingServers reach it in two ways.
func everythingServers(t *testing.T) map[string]func(t *testing.T) upstream.Server {
	program, script := everything(t)
	return map[string]func(t *testing.T) upstream.Server{
		"stdio": func(*testing.T) upstream.Server {
			return upstream.Server{Dial: upstream.Stdio(upstream.Command{Name: program, Args: []string{script, "stdio"}, Lookup: os.LookupEnv})}
		},
		"streamable HTTP": func(t *testing.T) upstream.Server {
			address := porttest.Free(t)
			_, port, _ := net.SplitHostPort(address)
			cmd := exec.CommandContext(t.Context(), program, script, "streamableHttp")
			cmd.Env = append(os.Environ(), "PORT="+port)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			eventually(t, "the server answers", func() bool { return porttest.Answers(address) })
			return upstream.Server{Dial: upstream.HTTP(upstream.Endpoint{URL: "http://" + address + "/mcp"})}
		},
	}
}

// TestEverythingAsks: server-everything asks its callers; what it lists depends on what they have declared.
func TestEverythingAsks(t *testing.T) {
	t.Parallel() // it waits
	for name, dial := range everythingServers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := dial(t)
			s.Name, s.Protocol, s.Roots = "e", upstream.OnlyOlder, []string{"file:///srv/a%20b"}
			p := staticPool(t, upstream.Options{}, s)
			who := &person{}
			all := &stages.Asker{Form: true, URL: true, Sampling: true, Ask: who.asker("Ada").Ask}
			for _, c := range []struct{ tool, args, want string }{
				{"trigger-elicitation-request", `{}`, "- Name: Ada"},
				{"trigger-sampling-request", `{"prompt":"a poem"}`, `"text": "Ada"`},
				{"trigger-url-elicitation", `{"url":"https://example.com/in"}`, "User completed the URL elicitation flow"},
			} {
				res, err := p.CallTool(t.Context(), stages.Call{Server: "e", Name: c.tool, Args: json.RawMessage(c.args), Asker: all})
				if err != nil || !strings.Contains(string(res.Data), c.want) {
					t.Errorf("%s: got %s, %v", c.tool, res.Data, err)
				}
			}
			_, err := p.CallTool(t.Context(), stages.Call{Server: "e", Name: "trigger-url-elicitation", Args: json.RawMessage(`{"url":"https://example.com/in","errorPath":true}`), Asker: all})
			wire, ok := errors.AsType[*jsonrpc.Error](err)
			e, _ := errors.AsType[*stages.Error](err)
			if !ok || wire.Code != -32042 || e == nil || !strings.Contains(e.Hint, "https://modelcontextprotocol.io") {
				t.Errorf("the addresses to open first: got %v", err)
			}
			res, err := p.CallTool(upstream.ForCaller(t.Context(), nil), stages.Call{Server: "e", Name: "get-roots-list"})
			if err != nil || !strings.Contains(string(res.Data), "file:///srv/a%20b") {
				t.Errorf("roots: got %s, %v", res.Data, err)
			}
			_, err = p.CallTool(upstream.ForCaller(t.Context(), nil), stages.Call{Server: "e", Name: "trigger-elicitation-request"})
			wantError(t, err, stages.UnknownTool, "trigger-elicitation-request", "")
			lists := func(a *stages.Asker) bool {
				l := p.Catalog(upstream.ForCaller(t.Context(), a), "e")[0]
				return slices.ContainsFunc(l.Tools, func(c toollist.CatalogTool) bool { return c.Name == "trigger-elicitation-request" })
			}
			if !lists(all) || lists(nil) {
				t.Errorf("the tool that asks is listed: %v for who declares it, %v for others", lists(all), lists(nil))
			}
		})
	}
}

// TestPythonAsks: a server of the Python SDK asks in both eras, two callers at the same time.
func TestPythonAsks(t *testing.T) {
	t.Parallel() // it waits
	fetch := os.Getenv("MCSH_TEST_FETCH")
	if fetch == "" {
		parttest.Missing(t, "MCSH_TEST_FETCH does not name mcp-server-fetch, which comes with the SDK; .ci/run parts installs it")
	}
	python := filepath.Join(filepath.Dir(fetch), "python")
	for name, protocol := range map[string]upstream.Protocol{"newer era": upstream.NewerFirst, "older era": upstream.OnlyOlder} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Protocol: protocol, Asks: upstream.Asks, Dial: upstream.Stdio(upstream.Command{
				Name: python, Args: []string{"testdata/asks.py"}, Lookup: os.LookupEnv,
			})})
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					who, secret := &person{}, fmt.Sprintf("secret %d", i)
					res, err := p.CallTool(context.WithoutCancel(t.Context()), stages.Call{
						Server: "s", Name: "greet", Args: json.RawMessage(`{"secret":"` + secret + `"}`), Asker: who.asker(fmt.Sprint(i)),
					})
					if want := fmt.Sprintf("%s: hello, %d", secret, i); err != nil || string(res.Data) != want {
						t.Errorf("got %q, %v; want %q", res.Data, err, want)
					}
					if seen := who.questions(); len(seen) != 1 || message(seen[0]) != "the secret is "+secret {
						t.Errorf("%s has seen %+v", secret, seen)
					}
				})
			}
			wg.Wait()
		})
	}
}
