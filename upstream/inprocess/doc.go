// Package inprocess reaches MCP servers in this process: the SDK's session over a pipe in memory, and calls of tools without it.
package inprocess
