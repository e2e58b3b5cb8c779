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

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// offered is what a client of a gateway sees of what its servers offer beside tools.
type offered struct {
	Resources []string `json:"resources"` // URIs
	Templates []string `json:"templates"`
	Prompts   []string `json:"prompts"`
	Read      []string `json:"read"`     // the texts of what it reads
	Got       string   `json:"got"`      // the first text of a prompt
	Complete  []string `json:"complete"` // the values for an argument
}

// What the clients ask for.
const (
	readStatic   = "mcsh://servers/every/demo://resource/static/document/features.md"
	readTemplate = "mcsh://servers/every/demo://resource/dynamic/text/7"
	gotPrompt    = "every__args-prompt"
)

// goOffered is what a client of the Go SDK sees.
func goOffered(version string) func(*testing.T, string) offered {
	return func(t *testing.T, url string) (o offered) {
		agent := connectHTTP(t, url, version, nil)
		for r, err := range agent.Resources(t.Context(), nil) {
			fine(t, err)
			o.Resources = append(o.Resources, r.URI)
		}
		for r, err := range agent.ResourceTemplates(t.Context(), nil) {
			fine(t, err)
			o.Templates = append(o.Templates, r.URITemplate)
		}
		for p, err := range agent.Prompts(t.Context(), nil) {
			fine(t, err)
			o.Prompts = append(o.Prompts, p.Name)
		}
		for _, uri := range []string{readStatic, readTemplate} {
			res, err := agent.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			fine(t, err)
			o.Read = append(o.Read, res.Contents[0].URI+" "+res.Contents[0].Text)
		}
		prompt, err := agent.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: gotPrompt, Arguments: map[string]string{"city": "Rome"}})
		fine(t, err)
		o.Got = prompt.Messages[0].Content.(*mcp.TextContent).Text
		values, err := agent.Complete(t.Context(), &mcp.CompleteParams{
			Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "every__completable-prompt"}, Argument: mcp.CompleteParamsArgument{Name: "department", Value: "E"},
		})
		fine(t, err)
		o.Complete = values.Completion.Values
		return o
	}
}

func fine(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// scriptOffered is what a script of another SDK's client prints.
func scriptOffered(argv func(t *testing.T) []string) func(*testing.T, string) offered {
	return func(t *testing.T, url string) (o offered) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		command := append(argv(t), url, readStatic, readTemplate, gotPrompt)
		var stderr strings.Builder
		client := exec.CommandContext(ctx, command[0], command[1:]...)
		client.Stderr = &stderr
		out, err := client.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, &stderr)
		}
		fine(t, json.Unmarshal(out, &o))
		return o
	}
}

// nightClients wait for the night in the tests that all clients repeat: by day the same SDK does so in the other era, and the
// same era has another SDK.
var nightClients = []string{"TypeScript 2025-11-25", "TypeScript 2 2025-11-25", "Python 2025-11-25"}

// byNight reports whether a client waits for the night.
func byNight(name string) bool { return slices.Contains(nightClients, name) && !parttest.Night() }

// TestOffers: clients of both eras list, read, get and complete what real servers offer beside tools.
func TestOffers(t *testing.T) {
	t.Parallel()
	_, url := serveHTTP(t, object{"every": nodeServer(t, everything), "gosdk": goServer(t, "gosdk-everything")})
	first := connectHTTP(t, url, versions[0], nil)
	until(t, "the gateway knows what the servers offer", func() bool {
		_, err := first.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_all_tools", Arguments: object{"detail": "names"}})
		fine(t, err)
		prompts, err := first.ListPrompts(t.Context(), nil)
		fine(t, err)
		return slices.ContainsFunc(prompts.Prompts, func(p *mcp.Prompt) bool { return p.Name == gotPrompt }) &&
			slices.ContainsFunc(prompts.Prompts, func(p *mcp.Prompt) bool { return strings.HasPrefix(p.Name, "gosdk__") })
	})
	want := goOffered(versions[0])(t, url)
	if text := fmt.Sprint(want); !strings.Contains(text, "weather in Rome") || !strings.Contains(text, "Engineering") || len(want.Read) != 2 ||
		!strings.HasPrefix(want.Read[0], readStatic+" ") || !slices.Contains(want.Resources, readStatic) || !slices.Contains(want.Templates, "mcsh://servers/every/demo://resource/dynamic/text/{resourceId}") {
		t.Fatalf("got %+v", want)
	}
	for name, see := range map[string]func(*testing.T, string) offered{
		"Go 2026-07-28":         goOffered(versions[1]),
		"TypeScript 2025-11-25": scriptOffered(func(t *testing.T) []string { return nodeOffered(t, "sdk", "legacy") }),
		"TypeScript 2026-07-28": scriptOffered(func(t *testing.T) []string { return nodeOffered(t, "client", "auto") }),
		"Python":                scriptOffered(func(t *testing.T) []string { return []string{pythonPath(t), "resources.py"} }),
	} {
		if byNight(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			got := see(t, url)
			for _, o := range []*offered{&got, &want} { // a server says when it has made a text
				for i := range o.Read {
					o.Read[i], _, _ = strings.Cut(o.Read[i], " at ")
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func nodeOffered(t *testing.T, part, era string) []string {
	nodeDir(t, "@modelcontextprotocol/"+part)
	return []string{"node", ownScript(t, "resources.mjs"), part, era}
}

// TestResourcePipeline: a pipeline maps over the resources of a real server.
func TestResourcePipeline(t *testing.T) {
	t.Parallel()
	_, url := serveHTTP(t, object{"every": nodeServer(t, everything)})
	agent := connectHTTP(t, url, versions[0], nil)
	got, failed := execute(t, agent,
		toolStage("resources", "list", object{"server": "every"}),
		command("jq", "map(select(.uri | endswith(\"features.md\")))"),
		object{"type": "tool", "server": "resources", "name": "read", "for_each": true},
		command("jq", "-r", ".[0] | split(\"\\n\")[0]"),
	)
	if failed || !strings.Contains(got, "# ") {
		t.Errorf("got %q", got)
	}
}
