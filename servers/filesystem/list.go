package filesystem

import (
	"context"
	"encoding/base64"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/tool"
	"github.com/mcsh-dev/mcsh/workspace"
)

const listInput = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "The directory, relative to the root; \".\" is the root."},
    "limit": {"type": "integer", "minimum": 1, "description": "At most so many entries (default: all, which may be 100,000)."},
    "cursor": {"type": "string", "description": "next_cursor of the list before."}
  },
  "required": ["path"],
  "additionalProperties": false
}`

const listOutput = `{
  "type": "object",
  "properties": {
    "entries": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "name": {"type": "string"},
          "path": {"type": "string", "description": "Relative to the root."},
          "type": {"enum": ["file", "directory", "link", "other"]},
          "size": {"type": "integer", "description": "Bytes; of files only."},
          "modified": {"type": "string", "format": "date-time"}
        },
        "required": ["name", "path", "type", "modified"],
        "additionalProperties": false
      }
    },
    "next_cursor": {"type": "string", "description": "Given if there are more."}
  },
  "required": ["entries"],
  "additionalProperties": false
}`

type listArgs struct {
	Path   string `json:"path"`
	Limit  *int   `json:"limit"`
	Cursor string `json:"cursor"`
}

type listing struct {
	Entries []listed `json:"entries"`
	Next    string   `json:"next_cursor,omitempty"`
}

type listed struct {
	Name     string         `json:"name"`
	Path     string         `json:"path"`
	Type     workspace.Type `json:"type"`
	Size     *int64         `json:"size,omitempty"`
	Modified string         `json:"modified"`
}

// labels are the names of types in text lines.
var labels = map[workspace.Type]string{
	workspace.File:      "[FILE] ",
	workspace.Directory: "[DIR] ",
	workspace.Link:      "[LINK] ",
	workspace.Other:     "[OTHER] ",
}

func (s *server) listDirectory() tool.Tool {
	return tool.Tool{
		Name: "list_directory",
		Description: "Lists one directory, sorted by name: entries with name, path, type, size and modified. " +
			"As text, one line each: [FILE] name, [DIR] name, [LINK] name, [OTHER] name.",
		Input:       listInput,
		Output:      listOutput,
		Annotations: tool.ReadOnly(false),
		Call:        tool.New(s.list),
	}
}

func (s *server) list(ctx context.Context, a listArgs) (*mcp.CallToolResult, error) {
	if a.Limit != nil && *a.Limit < 1 {
		return nil, workspace.Errorf(workspace.InvalidArgument, "leave it out to list all", "limit is %d, want at least 1", *a.Limit)
	}
	after, err := nameOf(a.Cursor)
	if err != nil {
		return nil, err
	}
	o := workspace.ListOptions{After: after}
	if a.Limit != nil {
		o.Limit = min(*a.Limit, workspace.MaxEntries)
	}
	infos, next, err := s.dir.ReadDir(ctx, a.Path, o)
	if err != nil {
		return nil, err
	}
	out := listing{Entries: make([]listed, 0, len(infos)), Next: cursorOf(next)}
	var text strings.Builder
	for _, i := range infos {
		e := listed{Name: i.Name, Path: i.Path, Type: i.Type, Modified: i.Modified.UTC().Format(time.RFC3339)}
		if i.Type == workspace.File {
			e.Size = &i.Size
		}
		out.Entries = append(out.Entries, e)
		text.WriteString(labels[i.Type] + lineName.Replace(i.Name) + "\n")
	}
	return withText(out, text.String())
}

// cursorOf returns the cursor behind a name: the name, or with a slash, which no name has, its encoding if JSON would change it.
func cursorOf(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return "/" + base64.RawURLEncoding.EncodeToString([]byte(name))
}

// nameOf returns the name of a cursor.
func nameOf(cursor string) (string, error) {
	code, encoded := strings.CutPrefix(cursor, "/")
	if !encoded {
		return cursor, nil
	}
	name, err := base64.RawURLEncoding.DecodeString(code)
	if err != nil {
		return "", workspace.Errorf(workspace.InvalidArgument, "give next_cursor of the list before", "the cursor %.100q is not one", cursor)
	}
	return string(name), nil
}

// lineName keeps a name on its line.
var lineName = strings.NewReplacer("\n", `\n`, "\r", `\r`)
