package upstream_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestGatewaysAmongServers: a gateway that meets itself leaves itself out, and another gateway unless it is configured.
func TestGatewaysAmongServers(t *testing.T) {
	server := func(name, instance string, found bool) upstream.Server {
		capabilities := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}
		if instance != "" {
			capabilities.Experimental = upstream.GatewayCapability(instance)
		}
		s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ServerOptions{Capabilities: capabilities})
		mcp.AddTool(s, &mcp.Tool{Name: "execute_pipeline"}, nothing)
		return upstream.Server{Name: name, Dial: upstream.InProcess(s, nil, nil), Found: found}
	}
	p := staticPool(
		t, upstream.Options{Instance: "us"}, server("plain", "", true), server("self", "us", true), server("same", "us", false),
		server("found", "them", true), server("configured", "them", false),
	)
	var names []string
	for _, l := range p.Catalog(t.Context()) {
		names = append(names, l.Server+" "+l.Status)
	}
	if diff := cmp.Diff([]string{"configured ready", "plain ready"}, names); diff != "" {
		t.Error(diff)
	}
	for _, tt := range []struct{ server, want string }{
		{"self", `server "self" is this gateway itself`}, {"same", "this gateway itself"}, {"found", "another gateway"},
	} {
		_, err := p.CallTool(t.Context(), stages.Call{Server: tt.server, Name: "execute_pipeline"})
		wantError(t, err, stages.Denied, tt.want, "call the tools of the other servers")
		if l := p.Catalog(t.Context(), tt.server); len(l) != 1 || l[0].Err == nil {
			t.Errorf("asked for by name: %+v", l)
		}
	}
	if _, err := p.CallTool(t.Context(), stages.Call{Server: "configured", Name: "execute_pipeline"}); err != nil {
		t.Error(err)
	}
}

func nothing(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{}}, nil, nil
}
