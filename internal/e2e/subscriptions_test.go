//go:build linux

package e2e

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// watchedURI is the resource to whose updates clients subscribe.
const watchedURI = "mcsh://servers/every/demo://resource/dynamic/text/7"

// goUpdated is the URI of the first update that a client of the Go SDK hears of.
func goUpdated(version string) func(*testing.T, string) string {
	return func(t *testing.T, url string) string {
		heard := make(chan string, 100)
		agent := connectHTTP(t, url, version, &mcp.ClientOptions{
			ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
				select {
				case heard <- r.Params.URI:
				default:
				}
			},
		})
		fine(t, agent.Subscribe(t.Context(), &mcp.SubscribeParams{URI: watchedURI}))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		select {
		case uri := <-heard:
			fine(t, agent.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: watchedURI}))
			return uri
		case <-ctx.Done():
			t.Fatal("no update came")
			return ""
		}
	}
}

// scriptUpdated is what a script of another SDK's client prints.
func scriptUpdated(argv func(t *testing.T) []string) func(*testing.T, string) string {
	return func(t *testing.T, url string) string {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		command := append(argv(t), url, watchedURI)
		var stderr strings.Builder
		client := exec.CommandContext(ctx, command[0], command[1:]...)
		client.Stderr = &stderr
		out, err := client.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, &stderr)
		}
		return strings.TrimSpace(string(out))
	}
}

// updating serves a gateway over a real server that reports updates.
func updating(t *testing.T, server object) (url string) {
	_, url = serveHTTP(t, object{"every": server})
	first := connectHTTP(t, url, versions[0], nil)
	if got, failed := execute(t, first, toolStage("every", "toggle-subscriber-updates", object{})); failed || !strings.Contains(got, "Started") {
		t.Fatalf("the server says %q", got)
	}
	return url
}

// TestSubscriptions: clients of both eras and of three SDKs hear of updates that a real server reports.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	program := updating(t, nodeServer(t, everything))
	standing := updating(t, object{"url": everythingHTTP(t, "streamableHttp") + "/mcp"})
	for name, client := range map[string]struct {
		url     string
		updated func(*testing.T, string) string
	}{
		"Go 2025-11-25":          {program, goUpdated(versions[0])},
		"Go 2026-07-28":          {program, goUpdated(versions[1])},
		"Go, a server over HTTP": {standing, goUpdated(versions[1])},
		"TypeScript 2025-11-25":  {program, scriptUpdated(func(t *testing.T) []string { return nodeUpdated(t, "sdk", "legacy") })},
		"TypeScript 2026-07-28":  {program, scriptUpdated(func(t *testing.T) []string { return nodeUpdated(t, "client", "auto") })},
		"Python 2025-11-25":      {program, scriptUpdated(func(t *testing.T) []string { return []string{pythonPath(t), "subscriptions.py", "legacy"} })},
		"Python 2026-07-28":      {program, scriptUpdated(func(t *testing.T) []string { return []string{pythonPath(t), "subscriptions.py", "auto"} })},
	} {
		if byNight(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := client.updated(t, client.url); got != watchedURI {
				t.Errorf("got %q, want %q", got, watchedURI)
			}
		})
	}
}

func nodeUpdated(t *testing.T, part, era string) []string {
	nodeDir(t, "@modelcontextprotocol/"+part)
	return []string{"node", ownScript(t, "subscriptions.mjs"), part, era}
}
