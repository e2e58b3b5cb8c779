// Package upstream keeps sessions to the MCP servers behind the gateway: it reads which servers there are, starts each when it is
// first needed, keeps one shared session to it, lists its tools and calls them. Code that needs no session with a server is in the
// packages below. It knows nothing of pipelines, of the agents in front, of logging or of the environment: its caller passes the
// values it needs.
//
// # Decisions
//
//   - The server's own tool list decides what a plan may call; listings may show the list of an earlier process at once.
//     The effects of a tool may have changed since.
//   - Programs start a few at a time, as many as there are processors: a runtime that loads its modules keeps a
//     processor busy, and twelve starting together exceed time limits that each would keep alone. A start frees its slot
//     after 3 s, and the servers of a waiting plan start first.
//   - A changed server is replaced, not changed. The new one takes the next call while the old one finishes those in
//     flight, so editing the configuration never interrupts a call with an effect.
//   - A disabled server is known and not used, as if no source named it. Only an operator disables one, and it lasts as long as the
//     pool: the state directory belongs to all gateways of a user, and a gateway that starts again should be what its configuration
//     says. There "disabled" leaves a server out for good.
//   - A message above 1 MiB is collected in a file until it is complete. A buffer that doubles leaves twice its size
//     behind, which the runtime frees late. The file counts as memory from the beginning.
//   - Lists of resources and prompts are read on sessions that tools have started. Nothing waits for them: a server may be
//     slow, and a client asks for these lists at its start.
//   - A question of a server reaches only the caller of the call in whose middle it was asked. In the older era many questions
//     name no call; they count only where one call is in flight. A wrong guess would show one caller the words of another. A task
//     is in flight as long as somebody waits for it; its questions name it, or come while nothing else is open.
//   - In the older era a session declares once what its client can be asked, and callers share sessions. So there is one
//     connection (serverConn) for each set of declared capabilities, with a session and a list of tools of its own, and
//     everything else shared (type shared). The first one has the set of the caller who needs it first, so a gateway with one
//     client starts one process of each server. The newer era declares it in each request: there the first connection is the only
//     one.
//   - A call whose context carries no caller ([ForCaller]) uses the first connection with any declaration: background work
//     starts no second process.
//   - Of servers that ask where no call is named, a call that ended without an answer ends its session: a late question
//     must not come to the next call.
//   - A subscription to a resource belongs to the pool and outlasts the session, so that callers need not notice when a server
//     starts again. After a gap everybody gets an update: to read once too often is better than to miss a change.
//   - The server "resources" has no code of its own for calls: the pool answers them, so a result of 64 MiB is not copied
//     through a session in memory.
//   - What one request may know of is a [View] in its context, not another pool: sessions, lists and kept shapes are those of
//     all. Code that finds or names a server for a request asks conn or shown, which ask the view. A context without a view shows
//     all servers: those of the operator and of the pool's own work have none.
//   - A group has one server only if it names that server. A pattern that happens to match one may match two tomorrow,
//     and URIs would change their form.
//   - The package imports schemas: input schemas are compiled where tools are known, and injecting them would add a
//     type, not freedom.
package upstream
