package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// promptSeparator stands between the server and the prompt in a name: clients show names as commands, where a slash
// begins one.
const promptSeparator = "__"

// promptName is the name of a server's prompt for clients: SERVER__PROMPT. A name that clients may refuse, or that another
// server's prompt could have, is made to fit and gets a hash of both names at its end.
func promptName(server, prompt string) string {
	return fitted(server+promptSeparator+prompt, strings.Contains(server+"_", promptSeparator), server, prompt)
}

// listPrompts lists the prompts of all servers, as far as they are known.
func (g *Gateway) listPrompts(ctx context.Context, req mcp.Request, _ mcp.MethodHandler) (mcp.Result, error) {
	write := outwardOffer(ctx, upstream.Prompts)
	if upstream.ViewOf(ctx).Only() == "" {
		write = func(o upstream.Offer) json.RawMessage {
			return o.Outward(upstream.Prompts, promptName(o.Server, o.Key))
		}
	}
	return g.list(req, "prompts", nil, g.o.Upstream.Offers(ctx, upstream.Prompts), write)
}

// findPrompt returns the server and the prompt of a name. A name with a server in front belongs to that server, which nobody
// may have asked yet; no prompt of another server can take it.
func (g *Gateway) findPrompt(ctx context.Context, name string) (server, prompt string, err error) {
	if only := upstream.ViewOf(ctx).Only(); only != "" {
		return only, name, nil
	}
	offers := g.o.Upstream.Offers(ctx, upstream.Prompts)
	found, err := onePrompt(offers, name, func(o upstream.Offer) string { return promptName(o.Server, o.Key) })
	if err != nil {
		return "", "", err
	}
	if found != nil {
		return found.Server, found.Key, nil
	}
	server, prompt, ok := strings.Cut(name, promptSeparator)
	if ok && prompt != "" && slices.Contains(append(g.o.Upstream.Servers(ctx), g.o.Upstream.Disabled(ctx)...), server) {
		return server, prompt, nil
	}
	found, err = onePrompt(offers, name, func(o upstream.Offer) string { return o.Key }) // as its server has it
	switch {
	case found != nil:
		return found.Server, found.Key, nil
	case err != nil:
		return "", "", err
	case !ok || prompt == "":
		return "", "", stages.Errorf(stages.InvalidArguments, "prompts/list shows the names: SERVER__PROMPT", "there is no prompt %q: %w", shown(name), upstream.ErrNoResource)
	}
	return server, prompt, nil // the error of the pool names similar servers
}

// onePrompt returns the offer with a name, nil if there is none. Two are an error.
func onePrompt(offers []upstream.Offer, name string, nameOf func(upstream.Offer) string) (found *upstream.Offer, err error) {
	for i, o := range offers {
		switch {
		case nameOf(o) != name:
		case found != nil:
			return nil, stages.Errorf(stages.InvalidArguments, "write SERVER__PROMPT, or rename one of the servers",
				"two prompts have the name %q: those of the servers %q and %q", shown(name), found.Server, o.Server)
		default:
			found = &offers[i]
		}
	}
	return found, nil
}

// getPrompt gets a prompt of a server.
func (g *Gateway) getPrompt(ctx context.Context, req mcp.Request, _ mcp.MethodHandler) (mcp.Result, error) {
	params := req.(*mcp.GetPromptRequest).Params
	return question{g, "prompts/get", req, params.Name}.ask(ctx, func(ctx context.Context, call stages.Call) (c upstream.Contents, err error) {
		if call.Server, call.Name, err = g.findPrompt(ctx, params.Name); err != nil {
			return c, err
		}
		if params.Arguments != nil {
			if call.Args, err = json.Marshal(params.Arguments); err != nil {
				return c, err
			}
		}
		return g.o.Upstream.Prompt(ctx, call)
	})
}

// complete completes an argument of a prompt or a template of a server.
func (g *Gateway) complete(ctx context.Context, req mcp.Request, _ mcp.MethodHandler) (mcp.Result, error) {
	params := req.(*mcp.CompleteRequest).Params
	if params.Ref == nil {
		return nil, question{g: g, req: req}.fault(stages.Errorf(stages.InvalidArguments, "", "ref is missing"))
	}
	q := question{g, "completion/complete", req, params.Ref.Name + params.Ref.URI} // a reference has one of them
	return q.ask(ctx, func(ctx context.Context, call stages.Call) (c upstream.Contents, err error) {
		kind, find := upstream.Prompts, g.findPrompt
		if params.Ref.Name == "" {
			kind, find = upstream.Templates, g.findTemplate
		}
		if call.Server, call.Name, err = find(ctx, q.name); err != nil {
			return c, err
		}
		if call.Args, err = json.Marshal(struct {
			Argument mcp.CompleteParamsArgument `json:"argument"`
			Context  *mcp.CompleteContext       `json:"context,omitempty"`
		}{params.Argument, params.Context}); err != nil {
			return c, err
		}
		return g.o.Upstream.Complete(ctx, kind, call)
	})
}

// findTemplate returns the server and the original of a template.
func (g *Gateway) findTemplate(ctx context.Context, uri string) (server, original string, err error) {
	if only := upstream.ViewOf(ctx).Only(); only != "" {
		return only, uri, nil
	}
	return g.o.Upstream.Owner(ctx, uri)
}
