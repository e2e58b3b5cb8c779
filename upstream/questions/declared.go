package questions

//lint:file-ignore SA1019 servers of the older era use what the newer one deprecates

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// Declared is what a session tells its server about its client: whom the server can ask what.
type Declared struct {
	Form     bool `json:"form,omitempty"`
	URL      bool `json:"url,omitempty"`
	Sampling bool `json:"sampling,omitempty"`
}

// By returns what is declared for callers who can be asked through a.
func By(a *stages.Asker) Declared {
	if a == nil {
		return Declared{}
	}
	return Declared{a.Form, a.URL, a.Sampling}
}

// Capabilities are those for the handshake of the older era.
func (d Declared) Capabilities(roots bool) *mcp.ClientCapabilities {
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

// Meta is the JSON of those in the requests of the newer era.
func (d Declared) Meta(roots bool) string {
	type none struct{}
	c := map[string]any{"extensions": map[string]any{rpc.TasksExtension: none{}}}
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

// Allows reports whether questions with a method may be answered.
func (d Declared) Allows(method string) bool {
	return method == rpc.Elicitation && (d.Form || d.URL) || method == rpc.Sampling && d.Sampling
}
