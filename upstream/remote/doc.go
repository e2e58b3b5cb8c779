// Package remote reaches MCP servers over HTTP: streamable HTTP, with requests of our own beside the SDK's session, and
// the older transport with a stream of server-sent events. It decides which headers go to which host, how many bytes are
// accepted, and which parts of an answer messages may show.
//
// # Decisions
//
//   - A ping decides what a 400 means: servers send it for an unknown session, and tools for reasons of their own. A 404
//     starts a new session in any case, as the protocol demands. A call that may have run is not made again.
//   - A session has one login. A request of a session that began with another one is not sent, and counts as one of a lost
//     session: the server may have bound the session to the account.
//   - The newest login counts, even if it has ended. A person who has signed in as somebody else never acts as the first account
//     again without knowing it.
//   - A token whose refresh is slow or fails is used until it expires. A token that was just refreshed and is refused is not
//     refreshed again at once, and after a failure there is a pause: a broken server or issuer costs few requests.
package remote
