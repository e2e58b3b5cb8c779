package rpc

import "encoding/json"

// News is a notification that something of the server has changed: a list, or a resource.
type News struct {
	Method string
	Params json.RawMessage // as sent; may be anything
}

// The methods of News.
const (
	ToolsChanged     = "notifications/tools/list_changed"
	ResourcesChanged = "notifications/resources/list_changed"
	PromptsChanged   = "notifications/prompts/list_changed"
	ResourceUpdated  = "notifications/resources/updated"
)

// IsNews reports whether the message is a notification that something has changed.
func (e *Envelope) IsNews() bool {
	switch string(e.Method) {
	case `"` + ToolsChanged + `"`, `"` + ResourcesChanged + `"`, `"` + PromptsChanged + `"`, `"` + ResourceUpdated + `"`:
		return e.ID == nil
	}
	return false
}

// News returns the message as news. Its parameters share no memory with the message.
func (e *Envelope) News() News {
	return News{Method: Text(json.RawMessage(e.Method)), Params: append(json.RawMessage(nil), e.Params...)}
}
