package gateway

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/stages"
)

// Callers of whom nobody has asked who they are, and what the others begin with.
const (
	callerStdio     = "stdio"        // the one client at the other end of the pipes
	callerAnonymous = stages.Anybody // everybody without a session: nobody is asked who they are
	callerSession   = "session "     // and its id, which is random
	callerUser      = "user "        // and the identity, whatever session it comes in
)

const sessionHeader = "Mcp-Session-Id"

// callerOf says on whose behalf a request runs. The SDK has checked the session's id before it comes here.
func callerOf(req *mcp.CallToolRequest) string {
	if req.Extra == nil || req.Extra.Header == nil {
		return callerStdio
	}
	if user := extraUser(req.Extra); user != "" {
		return callerUser + user
	}
	if id := req.Extra.Header.Get(sessionHeader); id != "" {
		return callerSession + id
	}
	return callerAnonymous
}

// extraUser is the identity that a request comes from, or empty where nobody has asked for one.
func extraUser(extra *mcp.RequestExtra) string {
	if extra == nil || extra.TokenInfo == nil {
		return ""
	}
	return extra.TokenInfo.UserID
}

// userIn is the identity that an HTTP request comes from.
func userIn(ctx context.Context) string {
	return extraUser(&mcp.RequestExtra{TokenInfo: auth.TokenInfoFromContext(ctx)})
}

// logCaller is what the log says of who has called.
func (g *Gateway) logCaller(extra *mcp.RequestExtra) zap.Field {
	if extra == nil || extra.TokenInfo == nil || g.o.NameOf == nil {
		return zap.Skip()
	}
	return zap.String("caller", g.o.NameOf(extra.TokenInfo))
}

// EndUser cancels the calls of an identity that may not come in any more, and closes its sessions. What its runs produced
// is kept as long as that of others: the same identity may come back.
func (g *Gateway) EndUser(user string) {
	g.mu.Lock()
	for cancel, caller := range g.open {
		if caller == callerUser+user {
			(*cancel)()
		}
	}
	g.mu.Unlock()
	for _, n := range g.sessions.ofUser(user) {
		n.close()
		go n.server.Close() // it waits for the calls in it, which have been cancelled
	}
}
