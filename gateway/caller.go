package gateway

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/stages"
)

// Callers without an identity, and the prefixes of the others.
const (
	callerStdio     = "stdio"          // the one client at the other end of the pipes
	callerAnonymous = stages.Anonymous // without authentication and session
	callerSession   = "session "       // and its random id
	callerUser      = "user "          // and the identity, in any session
)

const sessionHeader = "Mcp-Session-Id"

// callerOf returns the caller of a request. The SDK has checked the session's id.
func callerOf(extra *mcp.RequestExtra) string {
	if extra == nil || extra.Header == nil {
		return callerStdio
	}
	if user := extraUser(extra); user != "" {
		return callerUser + user
	}
	if id := extra.Header.Get(sessionHeader); id != "" {
		return callerSession + id
	}
	return callerAnonymous
}

// originOfCall returns the origin of a call.
func originOfCall(extra *mcp.RequestExtra) origin {
	if extra == nil || extra.Header == nil {
		return origin{key: callerStdio, named: true}
	}
	return originOf(extra.Header, extraUser(extra))
}

// workersOf names the group of callers that share sandbox workers, one after another: an identity, or an address without
// authentication. This machine is one address. Requests through an untrusted proxy on it may come from anyone, so each of
// their runs gets a new worker.
func workersOf(extra *mcp.RequestExtra) string {
	from := originOfCall(extra)
	if from.local && (extra.Header["X-Forwarded-For"] != nil || extra.Header["Forwarded"] != nil) {
		return stages.Anonymous
	}
	return from.key
}

// extraUser returns the identity of a call, or "" without authentication.
func extraUser(extra *mcp.RequestExtra) string {
	if extra == nil || extra.TokenInfo == nil {
		return ""
	}
	return extra.TokenInfo.UserID
}

// userIn returns the identity of an HTTP request.
func userIn(ctx context.Context) string {
	return extraUser(&mcp.RequestExtra{TokenInfo: auth.TokenInfoFromContext(ctx)})
}

// callerName returns the name of a caller for people, or "".
func (g *Gateway) callerName(extra *mcp.RequestExtra) string {
	if extra == nil || extra.TokenInfo == nil || g.o.NameOf == nil {
		return ""
	}
	return g.o.NameOf(extra.TokenInfo)
}

// logCaller returns the caller for the log.
func (g *Gateway) logCaller(extra *mcp.RequestExtra) zap.Field {
	if name := g.callerName(extra); name != "" {
		return zap.String("caller", name)
	}
	return zap.Skip()
}
