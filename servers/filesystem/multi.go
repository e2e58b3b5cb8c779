package filesystem

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/tool"
	"github.com/mcsh-dev/mcsh/workspace"
)

// openMulti makes a server whose calls name their root. A root is opened for each call: no state is kept between calls.
func openMulti(o Options) (*mcp.Server, error) {
	allowed := make([]string, len(o.AllowRoots))
	for i, dir := range o.AllowRoots {
		d, err := workspace.Open(dir)
		if err != nil {
			return nil, fmt.Errorf("option allow_roots: %w", err)
		}
		allowed[i] = d.Root()
		d.Close()
	}
	var all []tool.Tool
	for i, t := range new(server).tools(o) {
		routed, err := tool.Routed(t, "root", "The absolute path of the directory that all paths of this call are relative to.", func(root string) (tool.Func, func(), error) {
			s, err := openAllowed(o, root, allowed)
			if err != nil {
				return tool.Func{}, nil, err
			}
			return s.tools(o)[i].Call, func() { s.dir.Close() }, nil
		})
		if err != nil {
			return nil, err
		}
		all = append(all, routed)
	}
	return tool.Open(tool.Server{Name: "filesystem", Title: "Files of many directories", Instructions: instructions, Tools: all})
}

// openAllowed opens a root that is one of the allowed directories or below one. With none, every root is allowed.
func openAllowed(o Options, root string, allowed []string) (*server, error) {
	if !filepath.IsAbs(root) {
		return nil, workspace.Errorf(workspace.InvalidArgument, "give an absolute path", "the root %.200q is relative", root)
	}
	o.Root = root
	s, err := open(o)
	if err == nil && len(allowed) > 0 && !slices.ContainsFunc(allowed, func(dir string) bool {
		return s.dir.Root() == dir || strings.HasPrefix(s.dir.Root(), strings.TrimSuffix(dir, "/")+"/")
	}) {
		s.dir.Close()
		err = workspace.Errorf(workspace.PathEscape, "use one of "+strings.Join(allowed, ", "), "the root %.200q is not allowed", root)
	} else if err != nil && len(allowed) > 0 {
		err = workspace.Errorf(workspace.PathEscape, "use one of "+strings.Join(allowed, ", "), "the root %.200q is not allowed or cannot be opened", root)
	} else if err != nil {
		err = workspace.Errorf(workspace.NotFound, "", "the root %.200q cannot be opened: %w", root, err)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}
