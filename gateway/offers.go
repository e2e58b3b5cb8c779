package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/outward"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	offersPage      = 1000     // offers of one page of a list
	maxMeta         = 64 << 10 // bytes of the metadata of a result; longer metadata is left out
	answerCopies    = 4        // of a result, while URIs are changed and the answer is written
	offersPageBytes = 1 << 20  // bytes of one page, unless the first offer is longer
)

// relays answers the methods about what servers offer beside tools.
var relays = map[string]func(g *Gateway, ctx context.Context, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error){
	"resources/list":           (*Gateway).listResources,
	"resources/templates/list": (*Gateway).listTemplates,
	"resources/read":           (*Gateway).readResource,
	"resources/subscribe":      (*Gateway).subscribe,
	"resources/unsubscribe":    (*Gateway).unsubscribe,
	rpc.Listen:                 (*Gateway).listenBySDK,
	"prompts/list":             (*Gateway).listPrompts,
	"prompts/get":              (*Gateway).getPrompt,
	"completion/complete":      (*Gateway).complete,
	"tools/list":               (*Gateway).listTools,
	toolsCall:                  (*Gateway).relayCall,
}

// relay is middleware. It answers requests about resources and prompts of servers in place of the SDK.
func (g *Gateway) relay(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		answer := relays[method]
		if answer == nil || g.o.Upstream == nil {
			return next(ctx, method, req)
		}
		return answer(g, ctx, req, next)
	}
}

// offersChanged notifies clients that the lists of resources and prompts have changed. The SDK, which notifies those of the older
// protocol, sends notifications only for lists of its own, so it gets a resource and a prompt for a moment, which no list shows.
func (g *Gateway) offersChanged() {
	const name = "mcsh://changed"
	g.server.AddResource(&mcp.Resource{URI: name, Name: name}, nil)
	g.server.RemoveResources(name)
	g.server.AddPrompt(&mcp.Prompt{Name: name}, nil)
	g.server.RemovePrompts(name)
	g.subscriptions.changed(rpc.ResourcesChanged, rpc.PromptsChanged)
}

// A relayed is a result with members that a server has written.
type relayed struct {
	mcp.ResultBase        // its metadata is that of the gateway
	members        []byte // of the object, without _meta
	meta           []byte // members of _meta
	stateless      bool   // the client speaks the stateless protocol
	fresh          bool   // it is of a call, which has no time in a cache
	memory         *memory.Lease
}

// MarshalJSON implements [json.Marshaler].
func (r *relayed) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, len(r.members)+len(r.meta)+256)
	out = append(append(out, '{'), r.members...)
	if len(r.Meta)+len(r.meta) > 0 {
		meta := slices.Clip(r.meta)
		for _, name := range slices.Sorted(maps.Keys(r.Meta)) {
			value, err := json.Marshal(r.Meta[name])
			if err != nil {
				return nil, err
			}
			meta = appendMember(meta, name, value)
		}
		out = appendMember(out, "_meta", slices.Concat([]byte("{"), meta, []byte("}")))
	}
	if r.stateless && !r.fresh { // nobody else may be served it from a cache
		out = appendMember(appendMember(out, "ttlMs", []byte("0")), "cacheScope", []byte(`"private"`))
	}
	if r.stateless {
		out = appendMember(out, "resultType", []byte(`"complete"`))
	}
	return append(out, '}'), nil
}

// notRelayed are members that belong to the connection between the server and the gateway.
var notRelayed = map[string]bool{"_meta": true, "resultType": true, "ttlMs": true, "cacheScope": true, "nextCursor": true}

// relayedResult is the result of a server for a client.
func relayedResult(req mcp.Request, contents upstream.Contents) *relayed {
	r := &relayed{stateless: statelessSession(req)}
	rpc.Members(contents.Outward(), func(name, value []byte) {
		switch decoded := rpc.Name(name); {
		case decoded == "_meta" && len(value) <= maxMeta:
			r.meta = relayedMeta(value, contents.Verbatim)
		case !notRelayed[decoded]:
			r.add(string(name), value)
		}
	})
	return r
}

// relayedMeta returns the members of metadata that do not belong to the connection between the server and the gateway.
// Anything else than an object has none. Those of MCP Apps come only from a server whose names and URIs are verbatim.
func relayedMeta(meta []byte, verbatim bool) (members []byte) {
	if !rpc.Members(meta, func(name, value []byte) {
		if decoded := rpc.Name(name); !strings.HasPrefix(decoded, "io.modelcontextprotocol/") && (verbatim || !outward.IsApp(decoded)) {
			members = appendMember(members, string(name), value)
		}
	}) {
		return nil
	}
	return members
}

func (r *relayed) add(name string, value []byte) { r.members = appendMember(r.members, name, value) }

// appendMember appends a member to those of a JSON object, which may have begun. The name is as it is written, without quotes.
func appendMember(members []byte, name string, value []byte) []byte {
	if len(members) > 1 {
		members = append(members, ',')
	}
	return append(append(append(append(members, '"'), name...), `":`...), value...)
}

// statelessSession reports whether the session of a request is of the stateless era.
func statelessSession(req mcp.Request) bool {
	s, ok := req.GetSession().(*mcp.ServerSession)
	return ok && s != nil && s.InitializeParams() != nil && s.InitializeParams().ProtocolVersion >= statelessEra
}

// list answers with a page of offers, behind those of the gateway itself. A cursor counts the offers before its page.
func (g *Gateway) list(req mcp.Request, member string, own []json.RawMessage, all []upstream.Offer, write func(upstream.Offer) json.RawMessage) (mcp.Result, error) {
	return pageOf(req, member, own, len(all), func(i int) json.RawMessage { return write(all[i]) })
}

// pageOf answers with a page of n things, behind those of the gateway itself. One that cannot be written is left out. A cursor
// counts the things before its page.
func pageOf(req mcp.Request, member string, own []json.RawMessage, n int, write func(i int) json.RawMessage) (mcp.Result, error) {
	skip, cursor := 0, cursorOf(req)
	if cursor != "" {
		var err error
		if skip, err = strconv.Atoi(cursor); err != nil || skip < 0 {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("the cursor %q is not of the last page", shown(cursor))}
		}
		own = nil
	}
	found, size, at := slices.Clip(own), 0, min(skip, n)
	for ; at < n && len(found) < offersPage; at++ {
		one := write(at)
		if one == nil {
			continue
		}
		if size += len(one); size > offersPageBytes && len(found) > 0 {
			break
		}
		found = append(found, one)
	}
	list, err := json.Marshal(append([]json.RawMessage{}, found...))
	if err != nil {
		return nil, err
	}
	r := &relayed{stateless: statelessSession(req)}
	r.add(member, list)
	if at < n {
		r.add("nextCursor", []byte(strconv.Quote(strconv.Itoa(at))))
	}
	return r, nil
}

// cursorOf returns the cursor of a request for a page of a list; empty: it is the first one.
func cursorOf(req mcp.Request) string {
	if params := reflect.Indirect(reflect.ValueOf(req.GetParams())); params.IsValid() {
		return params.FieldByName("Cursor").String()
	}
	return ""
}

// marshalEach writes each thing of a list as JSON.
func marshalEach[T any](list []T) (all []json.RawMessage, err error) {
	for _, one := range list {
		text, err := json.Marshal(one)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}

// A question is a request about one offer of a server, on its way there.
type question struct {
	g      *Gateway
	method string
	req    mcp.Request
	name   string // the resource, template or prompt, as the client has written it
}

// ask passes a question on, within the limits of calls, and returns the result of the server.
func (q question) ask(ctx context.Context, request func(ctx context.Context, call stages.Call) (upstream.Contents, error)) (mcp.Result, error) {
	meta := q.req.GetParams().GetMeta()
	if _, err := upstream.Hops(meta); err != nil {
		return nil, q.fault(err)
	}
	inner, end, err := q.g.begin(ctx, q.g.lookups, q.req.GetExtra())
	if err != nil {
		q.g.o.Watch.Refused(q.method, err)
		return nil, q.fault(err)
	}
	defer end()
	start := time.Now()
	contents, err := request(inner, stages.Call{Name: q.name, Trace: traceOf(meta, q.req.GetExtra()), Reading: true})
	q.g.o.Watch.Asked(q.method, contents.Server, time.Since(start), len(contents.Result), err)
	if err != nil {
		return nil, q.fault(err)
	}
	r, err := outwardResult(ctx, q.req, contents)
	if err != nil {
		return nil, q.fault(err)
	}
	return r, nil
}

// outwardResult is a result of a server for a client. The SDK, or [Call.Close], ends ctx when the answer is written.
func outwardResult(ctx context.Context, req mcp.Request, contents upstream.Contents) (*relayed, error) {
	context.AfterFunc(ctx, contents.Memory.Close)
	size := int64(len(contents.Result))
	valid := utf8.Valid(contents.Result)
	if !valid {
		size *= int64(len(replacement))
	}
	if err := contents.Memory.Grow(answerCopies * size); err != nil {
		return nil, stages.OverLimit("memory", "try again when less is running", "%w", err)
	}
	if !valid { // a client may end its session at such a message
		contents.Result = bytes.ToValidUTF8(contents.Result, []byte(replacement))
	}
	r := relayedResult(req, contents)
	r.memory = contents.Memory
	return r, nil
}

// replacement stands for bytes that are no UTF-8.
const replacement = "\uFFFD"

// fault is the error of the protocol for a failed question.
func (q question) fault(err error) error {
	e := stages.AsError(err)
	text := e.Msg
	if e.Hint != "" {
		text += ": " + e.Hint
	}
	fault := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: texts.Plain(shownUpTo(text, troubleLength), false)}
	wire, answered := errors.AsType[*jsonrpc.Error](err)
	missing := errors.Is(err, upstream.ErrNoResource) || e.Code == stages.UnknownServer
	if answered { // other codes of the server mean nothing here
		missing = wire.Code == legacyNotFound || wire.Code == jsonrpc.CodeInvalidParams || wire.Code == jsonrpc.CodeMethodNotFound
	}
	if missing || e.Code == stages.InvalidArguments || e.Code == stages.Denied {
		fault.Code = jsonrpc.CodeInvalidParams
	}
	if missing && q.method == resourcesRead {
		fault.Data = notFoundData(q.name)
	}
	return fault
}

// legacyNotFound is the code of a resource that is missing, up to the version 2025-11-25 of the protocol.
const legacyNotFound = -32002

func notFoundData(uri string) json.RawMessage {
	data, err := json.Marshal(map[string]string{"uri": uri})
	if err != nil {
		return nil // cannot be: it is text
	}
	return data
}

// runsURI begins the URIs of outputs, which the gateway itself has.
const runsURI = outputScheme + "://" + outputHost + "/"

// outwardOffer returns the form of offers for clients in a view.
func outwardOffer(ctx context.Context, kind upstream.Kind) func(upstream.Offer) json.RawMessage {
	if upstream.ViewOf(ctx).Only() != "" {
		return func(o upstream.Offer) json.RawMessage { return o.Raw }
	}
	return func(o upstream.Offer) json.RawMessage { return o.Outward(kind, outward.URI(o.Server, o.Key)) }
}

// listResources lists the resources of all servers, as far as they are known. Outputs of runs are not listed.
func (g *Gateway) listResources(ctx context.Context, req mcp.Request, _ mcp.MethodHandler) (mcp.Result, error) {
	return g.list(req, "resources", nil, g.o.Upstream.Offers(ctx, upstream.Resources), outwardOffer(ctx, upstream.Resources))
}

// listTemplates lists the templates of outputs, and those of all servers.
func (g *Gateway) listTemplates(ctx context.Context, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	var own []json.RawMessage
	if cursorOf(req) == "" && g.o.Kept != nil {
		res, err := next(ctx, "resources/templates/list", req)
		if err != nil {
			return nil, err
		}
		if own, err = marshalEach(res.(*mcp.ListResourceTemplatesResult).ResourceTemplates); err != nil {
			return nil, err
		}
	}
	return g.list(req, "resourceTemplates", own, g.o.Upstream.Offers(ctx, upstream.Templates), outwardOffer(ctx, upstream.Templates))
}

// readResource reads a resource of a server, or an output.
func (g *Gateway) readResource(ctx context.Context, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	uri := req.(*mcp.ReadResourceRequest).Params.URI
	if strings.HasPrefix(uri, runsURI) {
		return next(ctx, "resources/read", req)
	}
	return question{g, "resources/read", req, uri}.ask(ctx, func(ctx context.Context, call stages.Call) (upstream.Contents, error) {
		call.Server = upstream.ViewOf(ctx).Only()
		return g.o.Upstream.Read(ctx, call)
	})
}
