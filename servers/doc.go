// Package servers is the table of the MCP servers in the binary. It knows their names and the form of their options, and
// nothing of their tools.
package servers
