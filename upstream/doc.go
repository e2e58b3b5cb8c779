// Package upstream keeps sessions to the MCP servers behind the gateway: it reads which servers there are, starts each
// when it is first needed, keeps one shared session to it, lists its tools and calls them. It is the only place that
// decides what data a tool's result becomes. It knows nothing of pipelines, of the agents in front, of logging or of the
// environment: its caller passes the values it needs.
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
//   - A message above 1 MiB is collected in a file until it is complete. A buffer that doubles leaves twice its size
//     behind, which the runtime frees late. The file counts as memory from the beginning.
//   - Lists of resources and prompts are read on sessions that tools have started. Nothing waits for them: a server may be
//     slow, and a client asks for these lists at its start.
//   - A subscription to a resource belongs to the pool and outlasts the session, so that callers need not notice when a server
//     starts again. After a gap everybody gets an update: to read once too often is better than to miss a change.
//   - A request subscriptions/listen is made anew before the old one ends, so that nothing is missed in between. With a program there is
//     one for each resource, because the go-sdk's server forgets the resources of two requests of a session together.
//   - The server "resources" has no code of its own for calls: the pool answers them, so a result of 64 MiB is not copied
//     through a session in memory.
//   - The package imports schemas: input schemas are compiled where tools are known, and injecting them would add a
//     type, not freedom.
package upstream
