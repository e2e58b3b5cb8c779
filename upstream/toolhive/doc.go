// Package toolhive is the source of the MCP servers that ToolHive runs. It finds ToolHive's API on this machine, checks
// that ToolHive is the one that answers, and follows the list of workloads: those that run become servers, reached
// through ToolHive's proxies.
//
// It only reads: it starts and stops nothing. Facts about the API were measured with ToolHive v0.44.
//
// # Decisions
//
//   - The API is looked for at the addresses of one table. Ports are not scanned: desktop apps without a discovery file
//     are older than it, and a scan takes any program of the machine for ToolHive.
//   - Every new connection to an API that nobody configured proves itself before anything else is sent over it. So a
//     program that takes the port of a ToolHive that has ended gets no headers and lists no servers.
//   - Stdio workloads are asked in the older protocol first. ToolHive's proxy has one pipe for all clients, and the
//     first question decides the protocol for all of them.
package toolhive
