// Package preview shows the shape of large data in an exact budget of characters: which paths there are, in the
// spelling of jq, which types and values they have and how often, read in one pass with bounded memory. It knows
// nothing of pipelines, tools or jq programs; it reads bytes and writes text.
package preview
