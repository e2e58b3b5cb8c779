// Package remote reaches MCP servers over HTTP: streamable HTTP, with requests of our own beside the SDK's session, and
// the older transport with a stream of server-sent events. It decides what leaves for which host, how much is taken, and
// which of an answer's words are shown.
package remote
