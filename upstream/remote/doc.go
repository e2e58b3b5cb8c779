// Package remote reaches MCP servers over HTTP: streamable HTTP, with requests of our own beside the SDK's session, and
// the older transport with a stream of server-sent events. It decides which headers go to which host, how many bytes are
// accepted, and which parts of an answer messages may show.
//
// # Decisions
//
//   - A ping decides what a 400 means: servers send it for an unknown session, and tools for reasons of their own. A 404
//     starts a new session in any case, as the protocol demands. A call that may have run is not made again.
package remote
