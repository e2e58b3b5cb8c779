// Package toolhive is the source of the MCP servers that ToolHive runs. It finds ToolHive's API on this machine, makes
// sure of who answers there before it believes a word, and follows the list of workloads: those that run become
// servers, reached through ToolHive's proxies.
//
// It only reads: it starts and stops nothing. Facts about the API were measured with ToolHive v0.44.
package toolhive
