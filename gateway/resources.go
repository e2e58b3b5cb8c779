package gateway

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/outward"
)

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
	cursor := ""
	if p := req.(*mcp.ListResourcesRequest).Params; p != nil {
		cursor = p.Cursor
	}
	return g.list(req, "resources", cursor, nil, g.o.Upstream.Offers(ctx, upstream.Resources), outwardOffer(ctx, upstream.Resources))
}

// listTemplates lists the templates of outputs, and those of all servers.
func (g *Gateway) listTemplates(ctx context.Context, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	r := req.(*mcp.ListResourceTemplatesRequest)
	cursor := ""
	if r.Params != nil {
		cursor = r.Params.Cursor
	}
	var own []json.RawMessage
	if cursor == "" && g.o.Kept != nil {
		res, err := next(ctx, "resources/templates/list", req)
		if err != nil {
			return nil, err
		}
		for _, t := range res.(*mcp.ListResourceTemplatesResult).ResourceTemplates {
			one, err := json.Marshal(t)
			if err != nil {
				return nil, err
			}
			own = append(own, one)
		}
	}
	return g.list(req, "resourceTemplates", cursor, own, g.o.Upstream.Offers(ctx, upstream.Templates), outwardOffer(ctx, upstream.Templates))
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
