// Package rpc makes JSON-RPC requests beside a session of the MCP SDK, and returns their results undecoded. The SDK does
// the handshake; tools/call and tools/list bypass it, because it decodes results into Go values, which rounds integers
// above 2^53, loses the order of keys and costs many times the time and memory.
//
// # Decisions
//
//   - Requests have ids of their own, so it is known whether one was sent, and a call costs a fraction of the SDK's.
//   - Requests of servers never come to the SDK: it does not say on which request's stream they came, and answers them from one
//     place for all callers of the session.
package rpc
