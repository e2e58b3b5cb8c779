package filesystem

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/mcsh-dev/mcsh/servers/tool"
	"github.com/mcsh-dev/mcsh/workspace"
)

// openMulti makes a server whose calls name their root. A root is opened for each call: no state is kept between calls.
func openMulti(o Options) (*tool.Opened, error) {
	var allowed []*workspace.Dir
	for _, dir := range o.AllowRoots {
		d, err := workspace.Open(dir)
		if err != nil {
			return nil, fmt.Errorf("option allow_roots: %w", err)
		}
		allowed = append(allowed, d)
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
func openAllowed(o Options, root string, allowed []*workspace.Dir) (*server, error) {
	if !filepath.IsAbs(root) {
		return nil, workspace.Errorf(workspace.InvalidArgument, "give an absolute path", "the root %.200q is relative", root)
	}
	if len(allowed) == 0 {
		dir, err := workspace.OpenPublic(root)
		if err != nil {
			return nil, notOpened(root, err)
		}
		return serve(dir, o), nil
	}
	real, err := filepath.EvalSymlinks(root)
	names := make([]string, len(allowed))
	for i, d := range allowed {
		names[i] = d.Root()
		if err != nil || !filepath.IsLocal(relative(d.Root(), real)) {
			continue
		}
		dir, err := d.Sub(real)
		if err != nil {
			return nil, notOpened(root, err)
		}
		return serve(dir, o), nil
	}
	return nil, workspace.Errorf(workspace.PathEscape, "use one of "+strings.Join(names, ", "), "the root %.200q is not allowed or cannot be opened", root)
}

func relative(dir, path string) string {
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		return ""
	}
	return rel
}

// notOpened keeps an error that has a kind.
func notOpened(root string, err error) error {
	if _, ok := errors.AsType[*workspace.Error](err); ok {
		return err
	}
	return workspace.Errorf(workspace.NotFound, "", "the root %.200q cannot be opened: %w", root, err)
}
