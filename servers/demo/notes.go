package demo

import (
	"context"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/tool"
)

const (
	maxNotes     = 1000
	maxNoteBytes = 4096
)

type note struct {
	ID   int    `json:"id"`
	Text string `json:"text"`
}

// notes are the only data that callers can change.
type notes struct {
	mu  sync.Mutex // guards all
	all []note
}

type addNoteArgs struct {
	Text string `json:"text"`
}

func (n *notes) add() tool.Tool {
	return tool.Tool{
		Name:        "add_note",
		Description: "Appends a note to the list in memory and returns it with its id.",
		Input: `{
  "type": "object",
  "properties": {"text": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "The note, at most 4096 bytes."}},
  "required": ["text"],
  "additionalProperties": false
}`,
		Annotations: tool.Changing(false, false),
		Call: tool.New(func(_ context.Context, a addNoteArgs) (*mcp.CallToolResult, error) {
			if len(a.Text) < 1 || len(a.Text) > maxNoteBytes {
				return nil, invalid("text has %d bytes, want 1 to %d", len(a.Text), maxNoteBytes)
			}
			added, err := n.append(a.Text)
			if err != nil {
				return nil, err
			}
			return tool.JSON(added)
		}),
	}
}

func (n *notes) append(text string) (note, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.all) == maxNotes {
		return note{}, &tool.Error{Kind: tool.LimitExceeded, Msg: fmt.Sprintf("there are %d notes, no more are kept", maxNotes), Hint: "start the server again"}
	}
	added := note{ID: len(n.all) + 1, Text: text}
	n.all = append(n.all, added)
	return added, nil
}

func (n *notes) list() tool.Tool {
	return tool.Tool{
		Name:        "list_notes",
		Description: "Lists the notes, oldest first: {notes: [{id, text}]}.",
		Input:       `{"type": "object", "properties": {}, "additionalProperties": false}`,
		Annotations: tool.ReadOnly(false),
		Call: tool.New(func(context.Context, struct{}) (*mcp.CallToolResult, error) {
			n.mu.Lock()
			all := append([]note{}, n.all...) // never null
			n.mu.Unlock()
			return tool.JSON(map[string][]note{"notes": all})
		}),
	}
}
