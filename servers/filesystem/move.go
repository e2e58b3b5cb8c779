package filesystem

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/tool"
)

const makeInput = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "The directory, relative to the root. Missing directories above it are made too."}
  },
  "required": ["path"],
  "additionalProperties": false
}`

const makeOutput = `{
  "type": "object",
  "properties": {
    "path": {"type": "string"},
    "created": {"type": "boolean", "description": "Whether it did not exist."}
  },
  "required": ["path", "created"],
  "additionalProperties": false
}`

const moveInput = `{
  "type": "object",
  "properties": {
    "source": {"type": "string", "description": "The file or directory, relative to the root."},
    "destination": {"type": "string", "description": "Its new path. Nothing may be there; missing directories above it are made."}
  },
  "required": ["source", "destination"],
  "additionalProperties": false
}`

const moveOutput = `{
  "type": "object",
  "properties": {
    "source": {"type": "string"},
    "destination": {"type": "string"}
  },
  "required": ["source", "destination"],
  "additionalProperties": false
}`

type pathArgs struct {
	Path string `json:"path"`
}

type made struct {
	Path    string `json:"path"`
	Created bool   `json:"created"`
}

type move struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
}

func (s *server) createDirectory() tool.Tool {
	return tool.Tool{
		Name:        "create_directory",
		Description: "Makes a directory, with those above it. If it exists, nothing changes.",
		Input:       makeInput,
		Output:      makeOutput,
		Annotations: repeatable(tool.Changing(false, false)),
		Call: tool.New(func(ctx context.Context, a pathArgs) (*mcp.CallToolResult, error) {
			rel, created, err := s.history.MakeDir(ctx, a.Path)
			if err != nil {
				return nil, err
			}
			if !created {
				return answer(made{rel, created}, "%s exists", rel)
			}
			return answer(made{rel, created}, "created %s", rel)
		}),
	}
}

func (s *server) moveFile() tool.Tool {
	return tool.Tool{
		Name:        "move_file",
		Description: "Moves or renames a file or directory, with its versions. If something is at the destination, the call fails with AlreadyExists.",
		Input:       moveInput,
		Output:      moveOutput,
		Annotations: tool.Changing(true, false),
		Call: tool.New(func(ctx context.Context, a move) (*mcp.CallToolResult, error) {
			from, to, err := s.history.Move(ctx, a.Source, a.Destination)
			if err != nil {
				return nil, err
			}
			return answer(move{from, to}, "moved %s to %s", from, to)
		}),
	}
}
