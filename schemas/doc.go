// Package schemas holds everything that is said in JSON Schema: the schema of the pipeline language, made from the Go
// types of stages; the check of a stage against it; and the check of a tool's arguments against the schema that its
// server publishes. Its findings are sentences that an agent can act on. It knows nothing of MCP sessions, and it
// never fetches anything: a schema that refers to another document is not compiled.
package schemas
