package rpc

// News is a notification that something of the server has changed: a list, or the resource with URI.
type News struct {
	Method string
	URI    string // of [ResourceUpdated]; empty if it cannot be read
}

// The methods of News.
const (
	ToolsChanged     = "notifications/tools/list_changed"
	ResourcesChanged = "notifications/resources/list_changed"
	PromptsChanged   = "notifications/prompts/list_changed"
	ResourceUpdated  = "notifications/resources/updated"
)

// maxUpdate bounds the parameters of [ResourceUpdated] that are read, in bytes.
const maxUpdate = 64 << 10

// IsNews reports whether the message is a notification that something has changed.
func (e *Envelope) IsNews() bool {
	switch string(e.Method) {
	case `"` + ToolsChanged + `"`, `"` + ResourcesChanged + `"`, `"` + PromptsChanged + `"`, `"` + ResourceUpdated + `"`:
		return e.ID == nil
	}
	return false
}

// News returns the message as news.
func (e *Envelope) News() News {
	n := News{Method: Text(e.Method)}
	if n.Method == ResourceUpdated && len(e.Params) <= maxUpdate {
		Members(e.Params, func(name, value []byte) {
			if Name(name) == "uri" && value[0] == '"' {
				n.URI = Text(value)
			}
		})
	}
	return n
}
