// Package rpc makes JSON-RPC requests beside a session of the MCP SDK, and takes their results undecoded. The SDK does
// the handshake and answers what servers ask; tools/call and tools/list go around it, because it decodes results into
// Go values, which rounds integers above 2^53, loses the order of keys and costs many times the time and memory.
package rpc
