package filesystem

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/tool"
	"github.com/mcsh-dev/mcsh/workspace"
)

const undoInput = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "The file, relative to the root."},
    "versions": {"type": "integer", "minimum": 1, "default": 1, "description": "How many versions to go."}
  },
  "required": ["path"],
  "additionalProperties": false
}`

const undoOutput = `{
  "type": "object",
  "properties": {
    "path": {"type": "string"},
    "left": {"type": "integer", "description": "How many more versions there are in this direction."}
  },
  "required": ["path", "left"],
  "additionalProperties": false
}`

type undoArgs struct {
	Path     string `json:"path"`
	Versions *int   `json:"versions"`
}

type undone struct {
	Path string `json:"path"`
	Left int    `json:"left"`
}

// A direction is that of undo_file or redo_file.
type direction struct {
	name, description string
	by                func(ctx context.Context, name string, n int) (rel string, left int, err error)
	text              string // of the path, the versions gone and those left
}

func (s *server) undoFile() tool.Tool {
	return direction{
		"undo_file", "Puts an older version of a file back. Nothing is lost: redo_file brings the newer one back.",
		s.history.Undo, "%s went back by %d; older versions: %d",
	}.tool()
}

func (s *server) redoFile() tool.Tool {
	return direction{
		"redo_file", "Puts a version of a file back that undo_file has replaced. After another change there is nothing to redo.",
		s.history.Redo, "%s went forward by %d; newer versions: %d",
	}.tool()
}

func (d direction) tool() tool.Tool {
	return tool.Tool{
		Name:        d.name,
		Description: d.description,
		Input:       undoInput,
		Output:      undoOutput,
		Annotations: tool.Changing(true, false),
		Call: tool.New(func(ctx context.Context, a undoArgs) (*mcp.CallToolResult, error) {
			n := 1
			if a.Versions != nil {
				n = *a.Versions
			}
			if n < 1 {
				return nil, workspace.Errorf(workspace.InvalidArgument, "", "versions is %d, want at least 1", n)
			}
			rel, left, err := d.by(ctx, a.Path, n)
			if err != nil {
				return nil, err
			}
			return answer(undone{rel, left}, d.text, rel, n, left)
		}),
	}
}
