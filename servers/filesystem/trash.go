package filesystem

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/tool"
	"github.com/mcsh-dev/mcsh/workspace"
)

const pathInput = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "The file or directory, relative to the root."}
  },
  "required": ["path"],
  "additionalProperties": false
}`

const deletedProperties = `
    "id": {"type": "integer", "description": "Of the entry in the trash, for restore_file."},
    "path": {"type": "string", "description": "Where it was, relative to the root."},
    "type": {"enum": ["file", "directory", "link", "other"]},
    "size": {"type": "integer", "description": "Bytes; of files only."}`

const deleteOutput = `{"type": "object", "properties": {` + deletedProperties + `}, "required": ["id", "path", "type"], "additionalProperties": false}`

const trashInput = `{
  "type": "object",
  "properties": {
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100, "description": "At most so many entries."},
    "cursor": {"type": "integer", "description": "next_cursor of the list before: entries deleted earlier."}
  },
  "additionalProperties": false
}`

const trashOutput = `{
  "type": "object",
  "properties": {
    "entries": {"type": "array", "items": {"type": "object", "properties": {` + deletedProperties + `,
      "deleted": {"type": "string", "format": "date-time"}
    }, "required": ["id", "path", "type", "deleted"], "additionalProperties": false}},
    "next_cursor": {"type": "integer", "description": "Given if there are more."}
  },
  "required": ["entries"],
  "additionalProperties": false
}`

const restoreInput = `{
  "type": "object",
  "properties": {
    "id": {"type": "integer", "description": "Of an entry of list_trash."}
  },
  "required": ["id"],
  "additionalProperties": false
}`

const restoreOutput = `{
  "type": "object",
  "properties": {
    "id": {"type": "integer"},
    "path": {"type": "string", "description": "Where it is again."}
  },
  "required": ["id", "path"],
  "additionalProperties": false
}`

const searchOutput = `{
  "type": "object",
  "properties": {
    "path": {"type": "string"},
    "exists": {"type": "boolean", "description": "Whether something is at this path now."},
    "now": {"type": "string", "description": "Where the file is that was last here; absent if it is in the trash or never left."},
    "trail": {"type": "array", "description": "What happened to it, oldest first.", "items": {
      "type": "object",
      "properties": {
        "time": {"type": "string", "format": "date-time"},
        "what": {"enum": ["moved", "deleted", "restored"]},
        "path": {"type": "string", "description": "Where it was after that; absent in the trash."},
        "id": {"type": "integer", "description": "In the trash."}
      },
      "required": ["time", "what"],
      "additionalProperties": false
    }}
  },
  "required": ["path", "exists", "trail"],
  "additionalProperties": false
}`

type entry struct {
	ID      int64          `json:"id"`
	Path    string         `json:"path"`
	Type    workspace.Type `json:"type"`
	Size    *int64         `json:"size,omitempty"`
	Deleted string         `json:"deleted,omitempty"`
}

func entryOf(d workspace.Deleted) entry {
	e := entry{ID: d.ID, Path: d.Path, Type: d.Type}
	if d.Type == workspace.File {
		e.Size = &d.Size
	}
	if !d.Time.IsZero() {
		e.Deleted = d.Time.Format(time.RFC3339)
	}
	return e
}

type trashArgs struct {
	Limit  *int   `json:"limit"`
	Cursor *int64 `json:"cursor"`
}

type trashList struct {
	Entries []entry `json:"entries"`
	Next    int64   `json:"next_cursor,omitempty"`
}

type restore struct {
	ID   int64  `json:"id"`
	Path string `json:"path"`
}

type restoreArgs struct {
	ID int64 `json:"id"`
}

type trail struct {
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
	Now    string `json:"now,omitempty"`
	Trail  []hop  `json:"trail"`
}

type hop struct {
	Time string `json:"time"`
	What string `json:"what"`
	Path string `json:"path,omitempty"`
	ID   int64  `json:"id,omitempty"`
}

func (s *server) deleteFile() tool.Tool {
	return tool.Tool{
		Name:        "delete_file",
		Description: "Moves a file, or a directory with all that is in it, to the trash. restore_file brings it back.",
		Input:       pathInput,
		Output:      deleteOutput,
		Annotations: tool.Changing(true, false),
		Call: tool.New(func(ctx context.Context, a pathArgs) (*mcp.CallToolResult, error) {
			gone, err := s.history.Delete(ctx, a.Path)
			if err != nil {
				return nil, err
			}
			return answer(entryOf(gone), "deleted %s: entry %d of the trash", gone.Path, gone.ID)
		}),
	}
}

func (s *server) listTrash() tool.Tool {
	return tool.Tool{
		Name:        "list_trash",
		Description: "Lists what delete_file has moved to the trash, the last deletion first. As text, one line each: id, type, path and time.",
		Input:       trashInput,
		Output:      trashOutput,
		Annotations: tool.ReadOnly(false),
		Call:        tool.New(s.trash),
	}
}

func (s *server) trash(ctx context.Context, a trashArgs) (*mcp.CallToolResult, error) {
	limit := 100
	if a.Limit != nil {
		limit = *a.Limit
	}
	if limit < 1 || limit > 1000 {
		return nil, workspace.Errorf(workspace.InvalidArgument, "", "limit is %d, want 1 to 1000", limit)
	}
	list, err := s.history.Trash(ctx)
	if err != nil {
		return nil, err
	}
	if a.Cursor != nil {
		list = slices.DeleteFunc(list, func(d workspace.Deleted) bool { return d.ID >= *a.Cursor })
	}
	out := trashList{Entries: []entry{}}
	if len(list) > limit {
		list = list[:limit]
		out.Next = list[limit-1].ID
	}
	var text strings.Builder
	for _, d := range list {
		e := entryOf(d)
		out.Entries = append(out.Entries, e)
		fmt.Fprintf(&text, "%d %s%s (%s)\n", d.ID, labels[d.Type], lineName.Replace(d.Path), e.Deleted)
	}
	return withText(out, text.String())
}

func (s *server) restoreFile() tool.Tool {
	return tool.Tool{
		Name:        "restore_file",
		Description: "Brings an entry of the trash back to where it was, with its versions. If something is there, the call fails with AlreadyExists.",
		Input:       restoreInput,
		Output:      restoreOutput,
		Annotations: tool.Changing(false, false),
		Call: tool.New(func(ctx context.Context, a restoreArgs) (*mcp.CallToolResult, error) {
			rel, err := s.history.Restore(ctx, a.ID)
			if err != nil {
				return nil, err
			}
			return answer(restore{a.ID, rel}, "restored %s", rel)
		}),
	}
}

func (s *server) searchFile() tool.Tool {
	return tool.Tool{
		Name:        "search_file",
		Description: "Says where the file or directory went that was last at a path: its moves, deletions and restores by this server.",
		Input:       pathInput,
		Output:      searchOutput,
		Annotations: tool.ReadOnly(false),
		Call:        tool.New(s.search),
	}
}

func (s *server) search(ctx context.Context, a pathArgs) (*mcp.CallToolResult, error) {
	rel, hops, err := s.history.Trace(ctx, a.Path)
	if err != nil {
		return nil, err
	}
	out := trail{Path: rel, Exists: s.dir.Exists(rel), Trail: []hop{}}
	var text strings.Builder
	for _, h := range hops {
		out.Trail = append(out.Trail, hop{h.Time.Format(time.RFC3339), h.What, h.Path, h.ID})
		out.Now = h.Path
		switch h.What {
		case "moved":
			fmt.Fprintf(&text, "%s moved to %s\n", h.Time.Format(time.RFC3339), lineName.Replace(h.Path))
		case "deleted":
			fmt.Fprintf(&text, "%s deleted: entry %d of the trash\n", h.Time.Format(time.RFC3339), h.ID)
		default:
			fmt.Fprintf(&text, "%s restored at %s\n", h.Time.Format(time.RFC3339), lineName.Replace(h.Path))
		}
	}
	if text.Len() == 0 && !out.Exists {
		return nil, workspace.Errorf(workspace.NotFound, "", "%q does not exist, and no record says that it ever did", a.Path)
	}
	if out.Exists {
		fmt.Fprintf(&text, "%s exists\n", lineName.Replace(rel))
	}
	return withText(out, text.String())
}
