package filesystem

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/tool"
	"github.com/mcsh-dev/mcsh/workspace"
)

const writeInput = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "The file, relative to the root. Missing directories above it are made."},
    "content": {"type": "string", "description": "All text of the file."}
  },
  "required": ["path", "content"],
  "additionalProperties": false
}`

const writeOutput = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "Relative to the root, links resolved."},
    "bytes": {"type": "integer"},
    "created": {"type": "boolean", "description": "Whether there was no such file."}
  },
  "required": ["path", "bytes", "created"],
  "additionalProperties": false
}`

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

type written struct {
	Path    string `json:"path"`
	Bytes   int    `json:"bytes"`
	Created bool   `json:"created"`
}

func (s *server) createFile() tool.Tool {
	return tool.Tool{
		Name:        "create_file",
		Description: "Makes a text file that does not exist yet. An existing one stays as it is, and the call fails with AlreadyExists.",
		Input:       writeInput,
		Output:      writeOutput,
		Annotations: tool.Changing(false, false),
		Call: tool.New(func(ctx context.Context, a writeArgs) (*mcp.CallToolResult, error) {
			return s.write(ctx, a, func(info fs.FileInfo) error {
				if info != nil {
					return workspace.Errorf(workspace.AlreadyExists, "replace it with write_file, or a part of it with edit_file", "%q exists", a.Path)
				}
				return nil
			})
		}),
	}
}

func (s *server) writeFile() tool.Tool {
	return tool.Tool{
		Name:        "write_file",
		Description: "Makes a text file or replaces all of its text, whole or not at all. Mode and owner of the file stay.",
		Input:       writeInput,
		Output:      writeOutput,
		Annotations: repeatable(tool.Changing(true, false)),
		Call: tool.New(func(ctx context.Context, a writeArgs) (*mcp.CallToolResult, error) {
			return s.write(ctx, a, func(fs.FileInfo) error { return nil })
		}),
	}
}

// write replaces a file unless permit, called with what is there, returns an error.
func (s *server) write(ctx context.Context, a writeArgs, permit func(fs.FileInfo) error) (*mcp.CallToolResult, error) {
	out := written{Bytes: len(a.Content)}
	rel, err := s.history.Change(ctx, a.Path, 0, func(_ []byte, info fs.FileInfo) ([]byte, error) {
		out.Created = info == nil
		return []byte(a.Content), permit(info)
	})
	if err != nil {
		return nil, err
	}
	out.Path = rel
	what := "wrote"
	if out.Created {
		what = "created"
	}
	return answer(out, "%s %s (%d bytes)", what, rel, out.Bytes)
}

// answer returns a structured result with a line of text.
func answer(structured any, format string, args ...any) (*mcp.CallToolResult, error) {
	return withText(structured, fmt.Sprintf(format, args...)+"\n")
}

func withText(structured any, text string) (*mcp.CallToolResult, error) {
	data, err := tool.Encode(structured)
	if err != nil {
		return nil, err
	}
	res := textResult([]byte(text))
	res.StructuredContent = data
	return res, nil
}
