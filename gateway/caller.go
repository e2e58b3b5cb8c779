package gateway

import "github.com/modelcontextprotocol/go-sdk/mcp"

// Callers that have no session to be told apart by.
const (
	callerStdio     = "stdio"     // the one client at the other end of the pipes
	callerAnonymous = "anonymous" // everybody without a session: nobody is asked who they are
	callerSession   = "session "  // and its id, which is random
)

const sessionHeader = "Mcp-Session-Id"

// callerOf says on whose behalf a request runs. The SDK has checked the session's id before it comes here.
func callerOf(req *mcp.CallToolRequest) string {
	if req.Extra == nil || req.Extra.Header == nil {
		return callerStdio
	}
	if id := req.Extra.Header.Get(sessionHeader); id != "" {
		return callerSession + id
	}
	return callerAnonymous
}
