// Package e2e holds the tests of mcsh as it is installed: the binaries, started as people start them, with MCP servers
// and third-party clients. It knows the command line and the protocol, and nothing of what is inside.
package e2e
