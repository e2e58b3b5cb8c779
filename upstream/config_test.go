package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/txtar"
)

var testEnv = map[string]string{"TOKEN": "s3cret", "HOME": "/home/me", "EMPTY": "", "PATH": "testdata/bin"}

func testLookup(name string) (string, bool) {
	v, ok := testEnv[name]
	if name == "PATH" {
		v, _ = filepath.Abs(v)
	}
	return v, ok
}

// boxBuiltin is a builtin server that keeps its options to be looked at.
type boxBuiltin struct {
	mcp.Transport
	options string
}

func newBox(options json.RawMessage) (func(context.Context) (mcp.Transport, error), error) {
	if strings.Contains(string(options), `"rot"`) {
		return nil, fmt.Errorf(`unknown option "rot"`)
	}
	return func(context.Context) (mcp.Transport, error) { return &boxBuiltin{options: string(options)}, nil }, nil
}

func TestConfig(t *testing.T) {
	files, err := filepath.Glob("testdata/config/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c := Config{
				Path: "mcp.json", Data: archive.Files[0].Data, Lookup: testLookup,
				Builtins: map[string]Builtin{"box": newBox},
			}
			servers, err := c.Servers(t.Context())
			var got strings.Builder
			for _, s := range servers {
				fmt.Fprintln(&got, show(t, s))
			}
			if err != nil {
				fmt.Fprintln(&got, err)
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// show writes a server in one line. Programs that are not installed are shown as well as those that are.
func show(t *testing.T, s Server) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", s.Name)
	transport, err := s.Dial(t.Context())
	switch tr := transport.(type) {
	case *stdioTransport:
		c := tr.process.command
		fmt.Fprintf(&b, "stdio %s %q", c.Name, c.Args)
		if c.Dir != "" {
			fmt.Fprintf(&b, " in %s", c.Dir)
		}
		if len(c.Env) > 0 {
			env := c.environ()
			fmt.Fprintf(&b, " env %s", strings.Join(slices.DeleteFunc(env, func(s string) bool { return strings.HasPrefix(s, "HOME=") || strings.HasPrefix(s, "PATH=") }), " "))
		}
	case *httpTransport:
		kind := "http"
		if _, ok := tr.Transport.(*tapTransport); ok {
			kind = "sse"
		}
		fmt.Fprintf(&b, "%s %s", kind, tr.trip.target)
		for name, values := range tr.trip.headers {
			fmt.Fprintf(&b, " headers %s=%s", name, strings.Join(values, ","))
		}
	case *boxBuiltin:
		fmt.Fprintf(&b, "builtin %s", tr.options)
	default:
		t.Fatalf("%s: %v", s.Name, err)
	}
	if s.Timeout > 0 {
		fmt.Fprintf(&b, " timeout %v", s.Timeout)
	}
	if s.Concurrency > 0 {
		fmt.Fprintf(&b, " concurrency %d", s.Concurrency)
	}
	for _, list := range []struct {
		name  string
		globs []string
	}{{"read-only", s.ReadOnly}, {"allow", s.Allow}, {"deny", s.Deny}} {
		if len(list.globs) > 0 {
			fmt.Fprintf(&b, " %s %v", list.name, list.globs)
		}
	}
	return b.String()
}

func TestExpand(t *testing.T) {
	c := &Config{Path: "/etc/mcp.json", Lookup: testLookup}
	for in, want := range map[string]string{
		"plain": "plain", "$TOKEN": "$TOKEN", "${TOKEN}": "s3cret", "a${TOKEN}b${TOKEN}": "as3cretbs3cret",
		"${EMPTY}": "", "${EMPTY:-x}": "x", "${NONE:-a:-b}": "a:-b", "$$": "$", "$${TOKEN}": "${TOKEN}", "$": "$",
		"${TOKEN:?no}": "s3cret", "${workspaceFolder}": "/etc", "${NONE:-}": "",
		"${EMPTY:?give it}": "error EMPTY: give it",
		"${NONE}":           "error the variable NONE is not set; set it, or write ${NONE:-default}",
		"${file:/etc/x}":    "error ${file:/etc/x} is not understood; want ${VAR}, ${VAR:-default}, ${VAR:?message} or ${env:VAR}",
	} {
		got, err := c.expand(in)
		if err != nil {
			got = "error " + err.Error()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"mcpServers":{"a":{"command":"x","args":["${A:-$}"]},"b":{"builtin":"box","o":[{}]}}}`))
	f.Add([]byte(`{"servers":{"a":{"url":"http://${TOKEN}","headers":{},"tools":{},"timeout":1e99}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := Config{Path: "mcp.json", Data: data, Lookup: testLookup, Builtins: map[string]Builtin{"box": newBox}}
		servers, err := c.Servers(t.Context())
		for _, s := range servers {
			if s.Dial == nil || strings.TrimSpace(s.Name) == "" {
				t.Errorf("got the server %+v", s)
			}
		}
		if err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
	})
}
