// Package servers is the table of the MCP servers inside of the binary. It knows their names and how their options are
// written, and nothing of what they do.
package servers
