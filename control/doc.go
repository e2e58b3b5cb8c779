// Package control lets programs of the same user look at running gateways and direct them: each gateway serves a small JSON
// API on a Unix socket in a directory of the state directory, and a [Client] calls it. [Handler] is the API for other
// listeners, too. The package knows nothing of MCP, of servers or of pipelines; a [Source] answers.
//
// # Decisions
//
//   - A lock beside each socket says whether its gateway lives: the kernel frees it with the process, however that ends. An
//     id of a process may belong to another program by then, and a socket that does not answer may belong to a gateway that
//     is busy. Only the owner of the lock removes the two files: the gateway itself, or a program that finds them without it.
//   - The directory is closed to others (0700), which protects a socket between its creation and its mode. A directory or
//     socket that belongs to somebody else, is open to others or is a link is refused, and nothing in it is changed. Both
//     sides ask the kernel for the user of the other one, too, and root is no exception.
//   - On Linux a socket is named through the open directory, /proc/self/fd/N/NAME: nobody can replace the directory after its
//     check, and the path of the state directory may be longer than the 107 bytes of a socket's address. Elsewhere a longer one
//     is an error.
//   - HTTP/1.1 with JSON, because each language and curl have it, and the same API can serve other machines over the
//     listener of the gateway.
//   - Answers hold neither arguments nor data, no ids that give access to outputs, and no text that a server has written. Requests
//     about single runs are the exception, for a [Viewer] of results: the socket's user, who could read the memory of the gateway
//     too, and others only where the operator allows it.
package control
