package upstream

//lint:file-ignore SA1019 servers of the older era use what the newer one deprecates

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// declared is what a session tells its server about its client: whom the server can ask what.
type declared struct {
	Form     bool `json:"form,omitempty"`
	URL      bool `json:"url,omitempty"`
	Sampling bool `json:"sampling,omitempty"`
}

func declaredBy(a *stages.Asker) declared {
	if a == nil {
		return declared{}
	}
	return declared{a.Form, a.URL, a.Sampling}
}

type callerKey struct{}

// ForCaller returns a context for the lists and calls of a caller, who can be asked through a; nil: who cannot. Without it, any
// session with a server will do.
func ForCaller(ctx context.Context, a *stages.Asker) context.Context {
	return context.WithValue(ctx, callerKey{}, declaredBy(a))
}

// forCall is [ForCaller] for a call that has an Asker. A task is known where it was begun, whoever waits for it now.
func forCall(ctx context.Context, c stages.Call) context.Context {
	if c.Task != nil && c.Task.Handle != "" {
		if d := declaredFor(c.Task.Handle); d != nil {
			return context.WithValue(ctx, callerKey{}, *d)
		}
	}
	if c.Asker == nil {
		return ctx
	}
	return ForCaller(ctx, c.Asker)
}

// capabilities are those for the handshake of the older era.
func (d declared) capabilities(roots bool) *mcp.ClientCapabilities {
	c := &mcp.ClientCapabilities{}
	if d.Form || d.URL {
		c.Elicitation = &mcp.ElicitationCapabilities{}
	}
	if d.Form {
		c.Elicitation.Form = &mcp.FormElicitationCapabilities{}
	}
	if d.URL {
		c.Elicitation.URL = &mcp.URLElicitationCapabilities{}
	}
	if d.Sampling {
		c.Sampling = &mcp.SamplingCapabilities{}
	}
	if roots {
		c.RootsV2 = &mcp.RootCapabilities{}
	}
	return c
}

// meta is the JSON of those in the requests of the newer era.
func (d declared) meta(roots bool) string {
	type none struct{}
	c := map[string]any{"extensions": map[string]any{tasksExtension: none{}}}
	modes := map[string]any{}
	for _, m := range []struct {
		set  bool
		in   map[string]any
		name string
	}{{d.Form, modes, "form"}, {d.URL, modes, "url"}, {d.Sampling, c, "sampling"}, {roots, c, "roots"}} {
		if m.set {
			m.in[m.name] = none{}
		}
	}
	if len(modes) > 0 {
		c["elicitation"] = modes
	}
	return texts.JSON(c)
}
