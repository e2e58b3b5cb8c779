// Package pace says when a request may go to a server: no more often than the operator allows, and not while the server has asked
// to wait. It knows nothing of what the requests are, nor of sessions.
package pace
