// Package gateway is the MCP server that agents talk to: four tools, their words, and the HTTP endpoint that serves both
// eras of the protocol. It runs pipelines through package stages and does not know how tools or commands are reached.
package gateway
