// Package sessions has sessions with servers: requests on one, its use and its end, and the updates of resources that come on it. It
// knows nothing of tools, nor of who makes the requests.
//
// # Decisions
//
//   - A request subscriptions/listen is made anew before the old one ends, so that nothing is missed in between. With a program
//     there is one for each resource, because the go-sdk's server forgets the resources of two requests of a session together.
//   - A session over streamable HTTP that has declared something keeps its standing stream open, since many servers ask there.
//     Without it they would wait for an answer that never comes, which is worse than a client that declares nothing.
package sessions
