package rpc

// News is a notification that a list of the server has changed.
type News struct{ Method string }

// The methods of News.
const (
	ToolsChanged     = "notifications/tools/list_changed"
	ResourcesChanged = "notifications/resources/list_changed"
	PromptsChanged   = "notifications/prompts/list_changed"
)

// IsNews reports whether the message is a notification that a list has changed.
func (e *Envelope) IsNews() bool {
	switch string(e.Method) {
	case `"` + ToolsChanged + `"`, `"` + ResourcesChanged + `"`, `"` + PromptsChanged + `"`:
		return e.ID == nil
	}
	return false
}

// News returns the message as news.
func (e *Envelope) News() News {
	return News{Text(e.Method)}
}
