// Package gateway is the MCP server that agents talk to: four tools, their words, and the HTTP endpoint that serves both
// eras of the protocol. It runs pipelines through package stages and does not know how tools or commands are reached.
//
// # Decisions
//
//   - Ordinary calls go beside the SDK, which decodes a message several times with a new buffer of 32 KB each. One
//     small decoder and encoder answer the calls that mean the same to both, over stdio and HTTP in both eras, and read
//     resources by their URIs here. Everything else goes to the SDK unread, and a fuzzer sends the first kind both ways.
//     The SDK still makes the sessions; the gateway counts their idle time. On stdio the built-in servers have the same.
//   - A long message that does not begin as a tools/call is refused before it is read: the SDK keeps the message that
//     opens a session, and the last one in it.
//   - Runs and sessions count for a name or an address, not for a session, since an anonymous caller opens sessions at
//     will.
//   - Over HTTP without authentication the id of a run is a capability: sessions may be lost, so runs do not belong to
//     them, and they are never listed. With authentication a run belongs to the identity. Logs and traces therefore
//     call a run by another name, which the reply has too, and a session by a hash.
//   - Tool lists write short types (`str`, `int`) and 180 characters of parameters, so 304 tools fit 42 KB. Errors and
//     details have the full signature.
//   - A group of servers is a view of the one pool, in the context of each request ([upstream.WithView]): one place here
//     puts it there, for both ways of a message and both eras, and the pool asks it wherever it finds or names a server. So
//     a new method of the pool is limited too. The path of a request and the groups of its caller decide, anew for each
//     request; a path outside is 404 for every reason. Runs belong to caller and groups, sessions to caller and path.
//     Without groups the context stays as it is.
//   - Notifications of changed lists are dropped for sessions in a view whose own lists are the same as before.
//   - The reply previews a long output while it streams. Nothing is spooled for it, and its memory is the budget.
//   - Resources, prompts and completion of servers are answered in a middleware, as JSON of the server with changed URIs:
//     the SDK keeps one list for all clients and decodes what it passes on. It still sends the notifications.
//   - Subscriptions of both eras are counted and delivered here, each client by itself: the SDK sends an update to one client
//     after another, so one that does not read would hold up all. It also ends the list_changed of a session with any of its
//     listens.
//   - A page of an output is in the query of its URI, because MCP reads whole resources. It ends between two
//     characters, and `_meta` names the next one, so the text stays byte-exact.
//   - A job of the engine of durable runs is a name. Plans, callers and replies are in the shared store, sealed, so that an engine learns
//     nothing, and a worker needs nothing but the name.
//   - A run is durable only if its caller or its operator asks for it. An agent that waits for a result would get a status in its place,
//     and most runs end before it would matter. The items of a large for_each go to workers in any case.
//   - Runs and shards have engines of their own: runs that wait for their shards would else take all slots.
package gateway
