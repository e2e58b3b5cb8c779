// Package workspace is a directory that callers are confined to: every path is resolved inside of it by the kernel
// (os.Root), so that "..", absolute paths and symbolic links cannot leave it, whatever changes meanwhile. It also knows
// which entries listings leave out. It knows nothing of MCP or of tools.
package workspace
