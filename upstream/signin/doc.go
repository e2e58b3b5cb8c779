// Package signin signs a person in to an MCP server over HTTP, as the authorization pages of the protocol say: it finds the
// authorization server, gets a client there, and changes the person's consent for tokens. It opens no browser and keeps
// nothing: its callers do. Every answer is hostile text, because any server may name any other.
//
// # Decisions
//
//   - The SDK's types of metadata and its parser of challenges are used, and PKCE of oauth2. The requests are our own: the
//     SDK's readers accept only a resource that is exactly the address, know no device endpoint and no bounds on addresses
//     where a client brings its own connections; its handler keeps no tokens, sends no resource when it refreshes, reads only
//     the first authorization server, tries a metadata document before a registered client, and uses /authorize of an issuer
//     without metadata. oauth2 repeats answers in its errors, and sends no resource either.
//   - A resource may contain the server: many name their host, or the parent of several endpoints. It never is another origin,
//     and a parent counts only if its own well-known address names it: a tenant of a host cannot name all of it.
//   - The fixed addresses of 2025-03-26 are used only for a server that refuses requests and has no metadata of a resource,
//     which all later revisions demand. They are on the origin of the server itself.
//   - An authorization server that does not say that it knows PKCE with S256 is refused, as the protocol demands; only one of
//     2025-03-26 without any metadata cannot say so.
//   - A new client is registered for every sign-in: its redirect address has another port each time.
package signin
