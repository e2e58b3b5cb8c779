//go:build linux

package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A heard keeps what a process writes while it runs.
type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(b)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() (string, bool)) {
	t.Helper()
	limit := time.Now().Add(2 * patience)
	for {
		last, ok := holds()
		if ok {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("%s did not happen; last seen: %s", what, last)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestServeFollows: a gateway that runs takes a changed configuration, keeps the old one while it is wrong, and lets a
// call in flight on a server that has changed end well.
func TestServeFollows(t *testing.T) {
	t.Parallel() // it waits
	binary := oneBinary(t)
	config := filepath.Join(t.TempDir(), "mcp.json")
	configure := func(text string) {
		t.Helper()
		if err := os.WriteFile(config+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(config+".new", config); err != nil {
			t.Fatal(err)
		}
	}
	shop := func(seed int) string {
		return fmt.Sprintf(`"shop": {"command": %q, "args": ["server", "demo", "--seed", "%d"]}`, binary, seed)
	}
	configure(`{"mcpServers": {` + shop(1) + `}}`)
	s := prepare(t, binary, "serve", "-v", "--sandbox", "off", "--listen", "127.0.0.1:0", "--config", config)
	said := &heard{}
	s.Stderr = said
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	var url string
	eventually(t, "listening", func() (string, bool) {
		for line := range strings.Lines(said.String()) {
			if _, after, ok := strings.Cut(strings.TrimSpace(line), " listens on "); ok {
				url = after
			}
		}
		return said.String(), url != ""
	})
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
		Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	call := func(tool string, args map[string]any) string {
		t.Helper()
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			t.Errorf("%s: %v", tool, err)
			return ""
		}
		return result.Content[len(result.Content)-1].(*mcp.TextContent).Text
	}
	lists := func(want string) func() (string, bool) {
		return func() (string, bool) {
			text := call("list_all_tools", map[string]any{"detail": "names"})
			return text, strings.Contains(text, want)
		}
	}
	eventually(t, "the first list", lists("get_customer"))

	slow := make(chan string)
	go func() {
		stage := map[string]any{"type": "tool", "server": "shop", "name": "slow", "args": map[string]any{"ms": 3000}}
		slow <- call("execute_pipeline", map[string]any{"pipeline": []any{stage}})
	}()
	configure(`{"mcpServers": {` + shop(2) + `, "more": {"builtin": "demo"}}}`)
	eventually(t, "the new server", lists("more"))
	if text := <-slow; !strings.Contains(text, "waited_ms") {
		t.Errorf("the call in flight got %q", text)
	}
	eventually(t, "the log", func() (string, bool) {
		return said.String(), strings.Contains(said.String(), `"added": ["more"]`)
	})

	configure(`{"mcpServers": {"more": {"comand": "x"}}}`)
	eventually(t, "the note", lists("note: the configuration has changed and is wrong; the one before is in use: "+config+`:1: more: unknown key "comand"`))
	if text, ok := lists("shop")(); !ok {
		t.Errorf("the servers from before are gone: %s", text)
	}
	if log := said.String(); !strings.Contains(log, `unknown key \"comand\"; did you mean \"command\"?`) {
		t.Errorf("the log does not tell of the mistake: %s", log)
	}

	configure(`{"mcpServers": {"more": {"builtin": "demo"}}, "sandbox": {"commands": {"tool": {"path": "/usr/bin/tool", "summary": "new"}}}}`)
	eventually(t, "the note about commands", lists("the one before is in use: "+config+": sandbox.commands: these commands have changed"))
	if text, ok := lists("shop")(); !ok {
		t.Errorf("the servers from before are gone: %s", text)
	}

	configure(`{"mcpServers": {"more": {"builtin": "demo"}}}`)
	eventually(t, "the end of the note", func() (string, bool) {
		text := call("list_all_tools", map[string]any{"detail": "names"})
		return text, !strings.Contains(text, "note:") && !strings.Contains(text, "## shop")
	})
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err != nil {
		t.Errorf("it ended with %v: %s", err, said)
	}
	s.leftNothing(t)
}
