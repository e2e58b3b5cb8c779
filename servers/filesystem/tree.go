package filesystem

import (
	"context"
	"path"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/tool"
	"github.com/mcsh-dev/mcsh/workspace"
)

const (
	// deepest is the largest depth of a tree. Each level of directories takes two levels of JSON, and JSON readers do not
	// accept much more.
	deepest = 200

	maxExclude = 100
)

const treeInput = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "The directory to start at, relative to the root; \".\" is the root."},
    "exclude": {"type": "array", "items": {"type": "string"}, "maxItems": 100,
      "description": "Patterns in the syntax of .gitignore, relative to the root, of what to leave out, such as \"*.log\" or \"dist/\"."},
    "max_depth": {"type": "integer", "minimum": 1, "maximum": 200, "default": 200,
      "description": "How many levels to show; 1 shows the entries of the directory itself."}
  },
  "required": ["path"],
  "additionalProperties": false
}`

const treeOutput = `{
  "type": "object",
  "$defs": {
    "node": {
      "type": "object",
      "properties": {
        "name": {"type": "string"},
        "path": {"type": "string", "description": "Relative to the root."},
        "type": {"enum": ["file", "directory", "link", "other"]},
        "children": {"type": "array", "items": {"$ref": "#/$defs/node"}, "description": "Of directories whose contents are shown."},
        "unread": {"enum": ["max_depth", "permission denied"], "description": "Why the contents of this directory are not shown."}
      },
      "required": ["name", "path", "type"],
      "additionalProperties": false
    }
  },
  "allOf": [{"$ref": "#/$defs/node"}]
}`

type treeArgs struct {
	Path     string   `json:"path"`
	Exclude  []string `json:"exclude"`
	MaxDepth *int     `json:"max_depth"`
}

// node is one entry of the tree. Children is nil if there is nothing to show, and empty for an empty directory.
type node struct {
	Name     string         `json:"name"`
	Path     string         `json:"path"`
	Type     workspace.Type `json:"type"`
	Children *[]*node       `json:"children,omitempty"`
	Unread   string         `json:"unread,omitempty"`
}

func (s *server) directoryTree() tool.Tool {
	return tool.Tool{
		Name: "directory_tree",
		Description: "Shows a directory with all that is below it as JSON: {name, path, type, children}, sorted by name. " +
			"Links are not followed. With jq, all files: .. | objects | select(.type==\"file\") | {path}.",
		Input:       treeInput,
		Output:      treeOutput,
		Annotations: tool.ReadOnly(false),
		Call:        tool.New(s.tree),
	}
}

func (s *server) tree(ctx context.Context, a treeArgs) (*mcp.CallToolResult, error) {
	o, err := a.options()
	if err != nil {
		return nil, err
	}
	rel, err := s.dir.Rel(a.Path)
	if err != nil {
		return nil, err
	}
	root := directory(path.Base(rel), rel)
	if rel == "." {
		root.Name = filepath.Base(s.dir.Root())
	}
	open := []*node{root} // the directories that the walk is in
	err = s.dir.Walk(ctx, rel, o, workspace.Visitor{
		Enter: func(e workspace.Entry) error {
			n := &node{Name: e.Name, Path: e.Path, Type: e.Type}
			if e.Type == workspace.Directory {
				n = directory(e.Name, e.Path)
			}
			in := open[len(open)-1]
			*in.Children = append(*in.Children, n)
			if e.Type == workspace.Directory {
				open = append(open, n)
			}
			return nil
		},
		Leave: func(_ workspace.Entry, unread string) {
			n := open[len(open)-1]
			open = open[:len(open)-1]
			if unread != "" {
				n.Unread, n.Children = unread, nil
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return tool.JSON(root)
}

func directory(name, path string) *node {
	return &node{Name: name, Path: path, Type: workspace.Directory, Children: &[]*node{}}
}

// options checks the arguments.
func (a treeArgs) options() (o workspace.WalkOptions, err error) {
	o.MaxDepth = deepest
	if a.MaxDepth != nil {
		o.MaxDepth = *a.MaxDepth
	}
	if o.MaxDepth < 1 || o.MaxDepth > deepest {
		return o, workspace.Errorf(workspace.InvalidArgument, "start deeper to see more", "max_depth is %d, want 1 to %d", o.MaxDepth, deepest)
	}
	if len(a.Exclude) > maxExclude {
		return o, workspace.Errorf(workspace.InvalidArgument, "join some with wildcards", "exclude has %d patterns, at most %d are taken", len(a.Exclude), maxExclude)
	}
	for _, p := range a.Exclude {
		if strings.Contains(p, "\n") {
			return o, workspace.Errorf(workspace.InvalidArgument, "give an array element per pattern", "the exclude pattern %.60q contains a newline", p)
		}
	}
	exclude, err := workspace.ParseIgnore(strings.Join(a.Exclude, "\n"))
	o.Skip = func(e workspace.Entry) bool { return exclude.Match(e.Path, e.Type == workspace.Directory) }
	return o, err
}
