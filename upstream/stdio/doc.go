// Package stdio reaches MCP servers that are programs on this machine: it starts them, in a process group and with an
// environment of their own, speaks to them in lines, keeps what they last said on standard error, and ends them with all
// that they have started.
package stdio
