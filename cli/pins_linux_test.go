package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestServePins: a server says something else of a tool at its next start. A gateway holds the tool back and logs it once, and
// while it runs takes what another process accepts.
func TestServePins(t *testing.T) {
	t.Parallel() // it waits
	archive, err := txtar.ParseFile("testdata/pins.txtar")
	if err != nil {
		t.Fatal(err)
	}
	binary, work, kept := oneBinary(t), t.TempDir(), t.TempDir()
	for _, f := range archive.Files {
		if err := os.WriteFile(filepath.Join(work, f.Name), f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lists := func(file string) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(work, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(work, "tools.json"), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	mcsh := func(args ...string) *started {
		return prepare(t, binary, append(args, "--config", filepath.Join(work, "mcp.json"), "--state", kept)...)
	}
	lists("one.json")
	if s := mcsh("tools", "ls", "--refresh"); s.Run() != nil {
		t.Fatal(s.stderr.String())
	}
	lists("two.json")

	s, said := mcsh("serve", "--pin", "--sandbox", "off"), &heard{}
	s.Stdout, s.Stderr = nil, said
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: s.Cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	call := func(tool string, args map[string]any) string {
		t.Helper()
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		return result.Content[len(result.Content)-1].(*mcp.TextContent).Text
	}
	const note = `note: held back until mcsh tools accept s: changed "read"; new "send"`
	read := map[string]any{"pipeline": []any{map[string]any{"type": "tool", "server": "s", "name": "read"}}}
	eventually(t, "the note", func() (string, bool) {
		text := call("list_all_tools", map[string]any{"server": "s"})
		return text, strings.Contains(text, note)
	})
	if text := call("execute_pipeline", read); !strings.Contains(text, "DENIED") {
		t.Errorf("a tool that is held back: %s", text)
	}

	if s := mcsh("tools", "accept", "s", "--yes"); s.Run() != nil {
		t.Fatal(s.stderr.String())
	}
	if text := call("list_all_tools", map[string]any{"server": "s"}); strings.Contains(text, "note:") || !strings.Contains(text, "send") {
		t.Errorf("after the tools were accepted: %s", text)
	}
	if text := call("execute_pipeline", read); text != "done" {
		t.Errorf("a tool that was accepted: %s", text)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	var lines []string
	for line := range strings.Lines(said.String()) {
		if _, text, ok := strings.Cut(line, "tools are held back"); ok {
			lines = append(lines, strings.Join(strings.Fields(text), " "))
		}
	}
	want := []string{`: mcsh tools accept s shows and accepts them {"server": "s", "changed": ["\"read\""], "new": ["\"send\""], "more": 0}`}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("the log (-want +got):\n%s%s", diff, said)
	}
}
