package rpc

// Steps counts the steps that it takes to look for the words in a text.
func (h *Hider) Steps(text string) int {
	_, steps := h.find(text)
	return steps
}
