// Package toollist reads the lists of tools of servers: each tool, what the operator says of it, its arguments in schemas and
// headers, and its description for agents and for clients. It asks no server, and does not know which tools are trusted.
package toollist
