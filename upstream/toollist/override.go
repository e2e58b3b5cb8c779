package toollist

// An Override is what the operator says about a tool in place of its server. A nil member stays as the server has it.
type Override struct {
	Name        *string `json:"name,omitempty"` // agents and clients use it in place of the server's own
	Description *string `json:"description,omitempty"`
	ReadOnly    *bool   `json:"readOnly,omitempty"` // whether the tool only reads, against the server and its patterns too
}

// apply changes a tool of a list, and returns the name that its server has for it.
func (o Override) apply(w *wireTool) (original string) {
	original = w.Name
	if o.Name != nil {
		w.Name = *o.Name
	}
	if o.Description != nil {
		w.Description = *o.Description
	}
	if o.ReadOnly != nil { // the operator knows the tool
		w.hints.readOnly, w.hints.annotated, w.hints.doubt = *o.ReadOnly, true, ""
	}
	return original
}

// renamed reports whether the operator has given the tool another name.
func (t *Tool) renamed() bool { return t.Name != t.Original }
