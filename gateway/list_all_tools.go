package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/upstream"
)

// listWait is how long list_all_tools waits for servers that are still starting.
const listWait = 10 * time.Second

// briefLength is how much of a description a line shows, in bytes.
const briefLength = 90

func (g *Gateway) listAllTools(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var call struct {
		Server names `json:"server"`
	}
	if wrong := decode(req, &call); wrong != nil {
		return nil, wrong
	}
	if g.o.Upstream == nil {
		return textResult("There are no MCP servers here. Command stages work: list_available_shell_commands.\n"), nil
	}
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	var b strings.Builder
	for _, l := range g.o.Upstream.Catalog(ctx, call.Server...) {
		writeListing(&b, l)
	}
	return textResult(listed("", slices.Collect(strings.Lines(b.String())), g.o.MaxOutput, "line")), nil
}

func writeListing(b *strings.Builder, l upstream.Listing) {
	fmt.Fprintf(b, "## %s", plain(l.Server, false))
	switch {
	case l.Err != nil:
		fmt.Fprintf(b, " (%s: %s)", l.Status, plain(l.Err.Error(), false))
	case l.Status != upstream.StatusReady:
		fmt.Fprintf(b, " (%s)", l.Status)
	}
	b.WriteString("\n")
	if l.Err != nil && l.Stderr != "" {
		fmt.Fprintf(b, "last words: %s\n", plain(lastLine(l.Stderr), false))
	}
	for _, t := range l.Tools {
		b.WriteString(plain(mark(t)+brief(t.Description), false) + "\n")
	}
}

// mark returns the signature of a tool, with ! behind the name of one that may change things.
func mark(t upstream.CatalogTool) string {
	signature := t.Tool.Signature
	if t.ReadOnly {
		return signature
	}
	return strings.Replace(signature, "(", "!(", 1)
}

// brief is the first sentence of a description, cut at a word.
func brief(description string) string {
	text := strings.Join(strings.Fields(description), " ")
	if i := strings.Index(text, ". "); i >= 0 {
		text = text[:i]
	}
	text = strings.TrimSuffix(text, ".")
	if text == "" {
		return ""
	}
	if len(text) > briefLength {
		at := strings.LastIndexByte(text[:briefLength], ' ')
		if at < 0 {
			for at = briefLength; !utf8.RuneStart(text[at]); at-- {
			}
		}
		text = text[:at] + " …"
	}
	return " - " + text
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
