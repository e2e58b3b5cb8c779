// Package signin signs a person in to an MCP server over HTTP, as the authorization pages of the protocol say: it finds the
// authorization server, gets a client there, and changes the person's consent for tokens. It opens no browser and keeps
// nothing: its callers do.
package signin
