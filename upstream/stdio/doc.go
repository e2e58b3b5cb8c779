// Package stdio reaches MCP servers that are programs on this machine: it starts them, in a process group and with an
// environment of their own, exchanges lines with them, keeps the end of their standard error, and ends them with all
// processes that they have started.
package stdio
