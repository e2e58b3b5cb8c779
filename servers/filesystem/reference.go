package filesystem

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/tool"
	"github.com/mcsh-dev/mcsh/workspace"
)

// reference is the server for people who come from the npm package @modelcontextprotocol/server-filesystem: names,
// arguments and texts of the tools are those of its version 2026.8.31, over several directories. Paths may be absolute, or
// relative to the first directory. Unlike there, a symbolic link must stay within its directory, missing directories above
// a new file are made, and edits keep the line ends of the file.
type reference struct {
	roots    []*server
	maxBytes int64
}

func openReference(o Options) (*tool.Opened, error) {
	r := &reference{maxBytes: o.MaxBytes}
	if len(o.Directories) == 0 {
		o.Directories = []string{o.Root}
	}
	for _, o.Root = range o.Directories {
		s, err := open(o)
		if err != nil {
			return nil, err
		}
		r.roots = append(r.roots, s)
	}
	tools := append(r.readers(), r.listers()...)
	if !o.ReadOnly {
		tools = append(tools, r.writers()...)
	}
	return tool.Open(tool.Server{Name: "filesystem", Title: "Files of directories", Instructions: "Files below the directories that list_allowed_directories names.", Tools: tools})
}

// A target is a path of a call.
type target struct {
	*server
	rel string
}

// full is the absolute path.
func (t target) full() string { return filepath.Join(t.dir.Root(), t.rel) }

// find finds the directory that a path is in: the longest one of those that it begins with.
func (r *reference) find(path string) (target, error) {
	if home, err := os.UserHomeDir(); err == nil && (path == "~" || strings.HasPrefix(path, "~/")) {
		path = home + path[1:]
	}
	var found target
	var refused error
	for _, s := range r.roots {
		rel, err := s.dir.Rel(path)
		if err != nil {
			refused = err
			continue
		}
		if found.server == nil || filepath.IsAbs(path) && len(s.dir.Root()) > len(found.dir.Root()) {
			found = target{s, rel}
		}
	}
	if found.server != nil {
		return found, nil
	}
	if workspace.KindOf(refused) == workspace.PathEscape {
		return found, workspace.Errorf(workspace.PathEscape, "list_allowed_directories names them", "%.200q is outside of the allowed directories", path)
	}
	return found, refused
}

// contentOutput is the schema of a result that is one text.
const contentOutput = `{"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"], "additionalProperties": false}`

// content returns a text as the npm server does: as a block, and structured.
func content[T ~string | ~[]byte](text T) (*mcp.CallToolResult, error) {
	res := textResult([]byte(text))
	res.StructuredContent = map[string]string{"content": res.Content[0].(*mcp.TextContent).Text} // encoded once, with the result
	return res, nil
}

// A property is an argument of a tool, with its JSON schema.
type property struct{ name, schema string }

var (
	pathArg    = property{"path", `{"type": "string", "description": "A path in an allowed directory."}`}
	excludeArg = property{"excludePatterns?", `{"type": "array", "items": {"type": "string"}, "maxItems": 100, "description": "Globs of paths to leave out, relative to path."}`}
)

// input writes an input schema. The name of an optional argument ends with "?".
func input(properties ...property) string {
	members := map[string]json.RawMessage{}
	required := []string{}
	for _, p := range properties {
		name, optional := strings.CutSuffix(p.name, "?")
		members[name] = json.RawMessage(p.schema)
		if !optional {
			required = append(required, name)
		}
	}
	data, err := tool.Encode(map[string]any{"type": "object", "properties": members, "required": required, "additionalProperties": false})
	if err != nil {
		panic("mcsh: internal error: the schema of a tool: " + err.Error())
	}
	return string(data)
}

// writers are the tools that change something.
func (r *reference) writers() []tool.Tool {
	return []tool.Tool{
		{
			Name: "write_file", Description: "Creates a file or overwrites it, whole or not at all.", Output: contentOutput,
			Input:       input(pathArg, property{"content", `{"type": "string", "description": "All text of the file."}`}),
			Annotations: repeatable(tool.Changing(true, false)), Call: tool.New(r.write),
		},
		{
			Name: "edit_file", Output: contentOutput,
			Description: "Replaces texts in a file, one after another, and returns a diff. Where oldText does not occur exactly, lines that differ only in white space at their ends count.",
			Input: input(pathArg, property{"edits", `{"type": "array", "description": "Made in their order, all or none.", "items": {"type": "object", "properties": {
				"oldText": {"type": "string", "description": "The text to replace."}, "newText": {"type": "string", "description": "The text in its place."}
				}, "required": ["oldText", "newText"]}}`}, property{"dryRun?", `{"type": "boolean", "default": false, "description": "Only return the diff."}`}),
			Annotations: tool.Changing(true, false), Call: tool.New(r.edit),
		},
		{
			Name: "create_directory", Description: "Creates a directory with those above it, or makes sure that it exists.", Output: contentOutput,
			Input: input(pathArg), Annotations: repeatable(tool.Changing(false, false)), Call: tool.New(r.makeDirectory),
		},
		{
			Name: "move_file", Description: "Moves or renames a file or directory. Fails if the destination exists.", Output: contentOutput,
			Input: input(property{"source", pathArg.schema}, property{"destination", pathArg.schema}), Annotations: tool.Changing(true, false), Call: tool.New(r.move),
		},
	}
}

func (r *reference) write(ctx context.Context, a writeArgs) (*mcp.CallToolResult, error) {
	t, err := r.find(a.Path)
	if err != nil {
		return nil, err
	}
	if _, err := t.server.write(ctx, writeArgs{t.rel, a.Content}, anyFile); err != nil {
		return nil, err
	}
	return content("Successfully wrote to " + a.Path)
}

func (r *reference) makeDirectory(ctx context.Context, a pathArgs) (*mcp.CallToolResult, error) {
	t, err := r.find(a.Path)
	if err != nil {
		return nil, err
	}
	if t.rel != "." {
		if _, _, err := t.history.MakeDir(ctx, t.rel); err != nil {
			return nil, err
		}
	}
	return content("Successfully created directory " + a.Path)
}

func (r *reference) move(ctx context.Context, a move) (*mcp.CallToolResult, error) {
	from, err := r.find(a.Source)
	if err != nil {
		return nil, err
	}
	to, err := r.find(a.Destination)
	if err != nil {
		return nil, err
	}
	if from.server != to.server {
		return nil, workspace.Errorf(workspace.InvalidArgument, "write it there and delete it here", "%.200q and %.200q are in different allowed directories", a.Source, a.Destination)
	}
	if _, _, err := from.history.Move(ctx, from.rel, to.rel); err != nil {
		return nil, err
	}
	return content(fmt.Sprintf("Successfully moved %s to %s", a.Source, a.Destination))
}
