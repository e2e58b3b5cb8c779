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

// shift is Undo or Redo.
type shift func(ctx context.Context, name string, n int) (rel string, left int, err error)

func (s *server) undoFile() tool.Tool {
	return undo("undo_file", "Puts an older version of a file back in place. Nothing is lost: redo_file brings the newer one back.", s.history.Undo)
}

func (s *server) redoFile() tool.Tool {
	return undo("redo_file", "Puts a version of a file back in place that undo_file has taken away. A change in between ends that.", s.history.Redo)
}

func undo(name, description string, by shift) tool.Tool {
	return tool.Tool{
		Name:        name,
		Description: description,
		Input:       undoInput,
		Output:      undoOutput,
		Effects:     tool.Effects{},
		Call: tool.New(func(ctx context.Context, a undoArgs) (*mcp.CallToolResult, error) {
			n := 1
			if a.Versions != nil {
				n = *a.Versions
			}
			if n < 1 {
				return nil, workspace.Errorf(workspace.InvalidArgument, "", "versions is %d, want at least 1", n)
			}
			rel, left, err := by(ctx, a.Path, n)
			if err != nil {
				return nil, err
			}
			return answer(undone{rel, left}, "%s is as it was %d versions away; %d more there", rel, n, left)
		}),
	}
}
