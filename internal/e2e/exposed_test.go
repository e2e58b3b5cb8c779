//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// exposed is what a client of a gateway gets of tools of servers that it calls by names of their own.
type exposed struct {
	Tools      []string       `json:"tools"`
	Said       string         `json:"said"`
	Structured map[string]any `json:"structured"`
	Links      []string       `json:"links"`
	Failed     string         `json:"failed"` // the text of a refused call
	Steps      []string       `json:"steps"`  // the last progress
}

// goExposed is what a client of the Go SDK gets.
func goExposed(version string) func(*testing.T, string) exposed {
	return func(t *testing.T, url string) (e exposed) {
		steps := make(chan string, 100)
		agent := connectHTTP(t, url, version, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			steps <- fmt.Sprintf("%g/%g", r.Params.Progress, r.Params.Total)
		}})
		for tool, err := range agent.Tools(t.Context(), nil) {
			fine(t, err)
			e.Tools = append(e.Tools, tool.Name)
		}
		call := func(name string, args object) *mcp.CallToolResult {
			params := &mcp.CallToolParams{Name: "every__" + name, Arguments: args, Meta: mcp.Meta{}}
			params.SetProgressToken(name)
			res, err := agent.CallTool(t.Context(), params)
			fine(t, err)
			return res
		}
		e.Said = call("echo", object{"message": "héllo"}).Content[0].(*mcp.TextContent).Text
		e.Structured, _ = call("get-structured-content", object{"location": "Chicago"}).StructuredContent.(map[string]any)
		for _, block := range call("get-resource-links", object{"count": 1}).Content {
			if link, ok := block.(*mcp.ResourceLink); ok {
				e.Links = append(e.Links, link.URI)
			}
		}
		if res := call("get-sum", object{"a": "x", "b": 1}); res.IsError {
			e.Failed = res.Content[0].(*mcp.TextContent).Text
		}
		call("trigger-long-running-operation", object{"duration": 1, "steps": 2})
		for e.Steps == nil || e.Steps[0] != "2/2" {
			select {
			case step := <-steps:
				e.Steps = []string{step}
			case <-time.After(patience):
				t.Fatalf("the last progress is %q", e.Steps)
			}
		}
		return e
	}
}

// scriptExposed is what a script of another SDK's client prints.
func scriptExposed(argv func(t *testing.T) []string) func(*testing.T, string) exposed {
	return func(t *testing.T, url string) (e exposed) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		command := append(argv(t), url)
		var stderr strings.Builder
		client := exec.CommandContext(ctx, command[0], command[1:]...)
		client.Stderr = &stderr
		out, err := client.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, &stderr)
		}
		fine(t, json.Unmarshal(out, &e))
		return e
	}
}

// TestExposedTools: clients of both eras call the tools of a real server beside those of the gateway, check its structured
// content against its schemas, and get its progress.
func TestExposedTools(t *testing.T) {
	t.Parallel()
	every := nodeServer(t, everything)
	every["expose"] = []string{"*"}
	_, url := serveHTTP(t, object{"every": every, "fixed": object{"builtin": "demo"}}, "--expose", "fixed/get_*")
	first := connectHTTP(t, url, versions[0], nil)
	until(t, "the gateway knows the tools of the server", func() bool {
		list, err := first.ListTools(t.Context(), nil)
		fine(t, err)
		return slices.ContainsFunc(list.Tools, func(tool *mcp.Tool) bool { return tool.Name == "every__echo" })
	})
	want := goExposed(versions[0])(t, url)
	if text := fmt.Sprint(want); !strings.Contains(text, "héllo") || !strings.Contains(text, "temperature") || !strings.Contains(text, "execute_pipeline") || !strings.Contains(text, "fixed__get_") ||
		!strings.Contains(want.Failed, "every__get-sum failed: INVALID_ARGUMENTS\na must be a number") || len(want.Links) != 1 || !strings.HasPrefix(want.Links[0], "mcsh://servers/every/demo://resource/") {
		t.Fatalf("got %+v", want)
	}
	for name, see := range map[string]func(*testing.T, string) exposed{
		"Go 2026-07-28":         goExposed(versions[1]),
		"TypeScript 2025-11-25": scriptExposed(func(t *testing.T) []string { return nodeExposed(t, "sdk", "legacy") }),
		"TypeScript 2026-07-28": scriptExposed(func(t *testing.T) []string { return nodeExposed(t, "client", "auto") }),
		"Python":                scriptExposed(func(t *testing.T) []string { return []string{pythonPath(t), "exposed.py"} }),
	} {
		if byNight(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(want, see(t, url)); d != "" {
				t.Error(d)
			}
		})
	}
}

func nodeExposed(t *testing.T, part, era string) []string {
	nodeDir(t, "@modelcontextprotocol/"+part)
	return []string{"node", ownScript(t, "exposed.mjs"), part, era}
}
