package preview

import (
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// contentTypes are the types of the content blocks of an MCP result.
var contentTypes = []string{"text", "image", "audio", "resource", "resource_link"}

// contentBlocks counts the content blocks of an MCP result by type, if n is such a result, a list of blocks or a block.
// It returns "" for text alone.
func (n *node) contentBlocks() string {
	if content := n.child("content"); content != nil && content.elem != nil {
		n = content
	}
	if n.elem != nil {
		n = n.elem
	}
	kind := n.child("type")
	if kind == nil || kind.strs.over || !kind.alone(kindString) {
		return ""
	}
	var parts []string
	other := false
	for _, v := range kind.strs.byCount() {
		if !slices.Contains(contentTypes, v.text) {
			return ""
		}
		other = other || v.text != "text"
		parts = append(parts, count(v.n, strings.ReplaceAll(v.text, "_", " ")))
	}
	if !other || n.child("data") == nil && n.child("resource") == nil && n.child("uri") == nil {
		return ""
	}
	text := strings.Join(parts, ", ")
	if mime := n.child("mimeType"); mime != nil && !mime.strs.over && len(mime.strs.values) > 0 {
		var types []string
		for _, v := range mime.strs.byCount() {
			types = append(types, texts.Fit(clean([]byte(v.text)), maxExample))
		}
		text += " (" + strings.Join(types, ", ") + ")"
	}
	return text
}

// child returns the node of a key, nil if there is none.
func (n *node) child(name string) *node {
	if at := n.find([]byte(name), 0); at >= 0 {
		return n.keys[at].n
	}
	return nil
}
