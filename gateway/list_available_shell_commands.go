package gateway

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/sandbox"
)

func (g *Gateway) listCommands(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if wrong := decode(req, &struct{}{}); wrong != nil {
		return nil, wrong
	}
	if g.o.Sandbox == nil {
		return textResult("Command stages are not available: this gateway has no sandbox. Tool and preview stages work.\n"), nil
	}
	r, err := g.o.Sandbox.Describe()
	if err != nil {
		return textResult(fmt.Sprintf("Command stages are not available: %v. Tool and preview stages work.\n", err)), nil
	}
	return textResult(CommandsText(r)), nil
}

// CommandsText lists the commands of a sandbox and how they differ from the usual programs.
func CommandsText(r sandbox.Report) string {
	var b, missing strings.Builder
	files := "no files"
	if r.Workspace {
		files = "files only those of the workspace, to read, by relative names as last arguments (grep PATTERN logs/a.txt; rg takes directories too)"
	}
	fmt.Fprintf(&b, "Commands read the output of the stage before and write to the next; no shell, %s. Sandbox: %s, profile %s.\n", files, r.Backend, r.Profile)
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "Note: %s.\n", note)
	}
	for _, a := range r.Programs {
		p, ok := r.Added.Find(a.Name)
		switch {
		case !ok:
		case a.Refusal != "":
			fmt.Fprintf(&missing, "%s: not available: %s\n", a.Name, a.Refusal)
		default:
			fmt.Fprintf(&b, "%s: %s", a.Name, p.Summary)
			if p.Notes != "" {
				fmt.Fprintf(&b, ". %s", strings.TrimSuffix(p.Notes, "."))
			}
			b.WriteString(".\n")
		}
	}
	return b.String() + missing.String()
}
