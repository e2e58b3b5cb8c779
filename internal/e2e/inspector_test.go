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
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// TestInspector runs the protocol's own inspector against the gateway, in each era over each transport. Its exit status
// tells: 6 is a schema that some client could not read. By day each transport has the list in one era, and the calls have
// the third.
func TestInspector(t *testing.T) {
	t.Parallel()
	servers := object{"demo": object{"builtin": "demo"}}
	call := []string{
		"--method", "tools/call", "--tool-name", "execute_pipeline",
		"--tool-args-json", encode(t, object{"pipeline": []object{toolStage("demo", "list_orders", object{}), command("jq", ".orders | length")}}),
	}
	for name, target := range map[string]func(t *testing.T) (*process, []string){
		"stdio": func(t *testing.T) (*process, []string) {
			p := mcsh(t, servers, "serve")
			config := filepath.Join(t.TempDir(), "inspector.json")
			entry := object{"command": p.Path, "args": p.Args[1:], "env": object{"TMPDIR": p.tmp, "MCSH_SANDBOX": "local", "MCSH_STATE": "off"}}
			if err := os.WriteFile(config, []byte(encode(t, object{"mcpServers": object{"gateway": entry}})), 0o600); err != nil {
				t.Fatal(err)
			}
			return p, []string{"--config", config, "--server", "gateway"}
		},
		"HTTP": func(t *testing.T) (*process, []string) {
			p, url := serveHTTP(t, servers)
			return p, []string{url, "--transport", "http"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, args := target(t)
			for _, era := range []string{"legacy", "auto", "modern"} {
				if byDay := map[string]string{"stdio": "legacy", "HTTP": "modern"}; era != byDay[name] && !parttest.Night() {
					continue
				}
				inspected := inspect(t, p, append(args, "--protocol-era", era, "--method", "tools/list", "--strict"))
				var names []string
				for _, tool := range inspected.Tools {
					names = append(names, tool.Name)
				}
				slices.Sort(names)
				if diff := cmp.Diff(gatewayTools, names); diff != "" {
					t.Errorf("%s: tools (-want +got):\n%s", era, diff)
				}
			}
			called := inspect(t, p, append(slices.Concat(args, call), "--protocol-era", "auto"))
			if len(called.Content) != 2 || called.Content[1].Text != "200\n" {
				t.Errorf("the call: %+v", called)
			}
			if name == "HTTP" { // over stdio the runs end with the client
				uri := "mcsh://runs/" + called.Meta.Report.Run + "/output"
				read := inspect(t, p, append(args, "--method", "resources/read", "--uri", uri, "--protocol-era", "auto"))
				if len(read.Contents) != 1 || read.Contents[0].Text != "200\n" {
					t.Errorf("the output of the run as a resource: %+v", read)
				}
			}
			until(t, "the gateway ends with its client", func() bool { return name == "HTTP" || !alive(t, p.tmp) })
		})
	}
}

// An inspected is a result of any method.
type inspected struct {
	Tools    []struct{ Name string }
	Content  []struct{ Text string }
	Contents []struct{ Text string }
	Meta     struct {
		Report struct{ Run string } `json:"mcsh/report"`
	} `json:"_meta"`

	raw json.RawMessage
}

// inspect runs the inspector once. It writes nothing into anybody's home.
func inspect(t *testing.T, p *process, args []string) inspected {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	script := nodeScript(t, "@modelcontextprotocol/inspector")
	cmd := exec.CommandContext(ctx, parttest.Node(t), append([]string{script, "--cli", "--format", "json"}, args...)...)
	cmd.Env, cmd.Dir = append(slices.Clone(p.Env), "HOME="+t.TempDir()), p.Dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v: %s", args, err, &stderr)
	}
	var answer struct{ Result json.RawMessage }
	err = json.Unmarshal(out, &answer)
	read := inspected{raw: answer.Result}
	if err == nil {
		err = json.Unmarshal(answer.Result, &read)
	}
	if err != nil {
		t.Fatalf("%q: %v in %s", args, err, out)
	}
	return read
}
