package gateway

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// endpointPath is the path of all servers that a caller may use. A group has the path below it.
const endpointPath = "/mcp"

// groupHeader carries the group in the path of a request to the handlers of its calls, since the SDK passes them only the
// headers. enterGroup removes a value from the client.
const groupHeader = "Mcsh-Group"

// pathGroup returns the group that the path of an endpoint names, or "". It reports false for the path of anything else.
func pathGroup(path string) (group string, ok bool) {
	group, below := strings.CutPrefix(path, endpointPath+"/")
	if !below {
		return "", path == endpointPath
	}
	return group, upstream.ValidGroup(group)
}

// enterGroup sets the groupHeader of a request. It reports false for a path that is not there for its caller.
func (f *front) enterGroup(r *http.Request) bool {
	delete(r.Header, groupHeader)
	group, ok := pathGroup(r.URL.Path)
	if group == "" {
		return ok
	}
	if !ok || f.hasGroup == nil || !f.hasGroup(group, auth.TokenInfoFromContext(r.Context())) {
		return false
	}
	r.Header.Set(groupHeader, group)
	return true
}

// noGroup is the answer to a path that is not there. It is the same for a group of others and for none.
const noGroup = "there is no group of this name here for you; " + endpointPath + " has all that you may use"

// requestGroup returns the group in the path of a request, or "".
func requestGroup(extra *mcp.RequestExtra) string {
	if extra == nil {
		return ""
	}
	return extra.Header.Get(groupHeader)
}

// ownGroups returns the groups of a caller. False: nobody limits the caller to groups.
func (g *Gateway) ownGroups(info *auth.TokenInfo) (groups []string, limited bool) {
	if info == nil || g.o.GroupsOf == nil {
		return nil, false
	}
	return g.o.GroupsOf(info)
}

// hasGroup reports whether a group is there for a caller.
func (g *Gateway) hasGroup(group string, info *auth.TokenInfo) bool {
	if g.o.Upstream == nil || g.o.Group != "" && g.o.Group != group || !g.o.Upstream.HasGroup(group) {
		return false
	}
	own, limited := g.ownGroups(info)
	return !limited || slices.Contains(own, group)
}

// groupsOf returns the groups whose servers a request may use, sorted. False: it may use all servers.
func (g *Gateway) groupsOf(extra *mcp.RequestExtra) (groups []string, limited bool) {
	wanted := cmp.Or(g.o.Group, requestGroup(extra))
	if extra != nil {
		groups, limited = g.ownGroups(extra.TokenInfo)
	}
	switch {
	case wanted == "":
		return groups, limited
	case limited && !slices.Contains(groups, wanted):
		return nil, true
	}
	return []string{wanted}, true
}

// inView returns the context of a request with the servers that it may use.
func (g *Gateway) inView(ctx context.Context, extra *mcp.RequestExtra) context.Context {
	groups, limited := g.groupsOf(extra)
	if !limited || g.o.Upstream == nil {
		return ctx
	}
	return upstream.WithView(ctx, g.o.Upstream.View(groups...))
}

// runsName returns the name of the owner of the runs of a request: what ran in one group is not there in another.
func (g *Gateway) runsName(extra *mcp.RequestExtra) string {
	caller := callerOf(extra)
	if strings.HasPrefix(caller, callerSession) {
		caller = callerAnonymous
	}
	if groups, limited := g.groupsOf(extra); limited {
		caller += "\nin " + strings.Join(groups, " ") // no name has a line break
	}
	return caller
}

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
