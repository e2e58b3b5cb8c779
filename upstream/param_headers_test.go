package upstream_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestHeadersThatCannotBe: a tool whose arguments cannot all stand in the headers that it wants is left out, where there
// are headers: in the newer era, over HTTP.
func TestHeadersThatCannotBe(t *testing.T) {
	for name, tt := range map[string]struct{ properties, want string }{
		"good":                 {`"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"integer","x-mcp-header":"B"},"c":{"type":["boolean","null"],"x-mcp-header":"C"}`, ""},
		"nested":               {`"o":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}`, ""},
		"without a type":       {`"a":{"x-mcp-header":"A"}`, ""},
		"empty":                {`"a":{"type":"string","x-mcp-header":""}`, `argument "a" is "", which cannot be the name`},
		"no text":              {`"a":{"type":"string","x-mcp-header":7}`, `argument "a" is "7", which cannot be the name`},
		"a space":              {`"a":{"type":"string","x-mcp-header":"My Region"}`, `"My Region", which cannot`},
		"a line":               {`"a":{"type":"string","x-mcp-header":"A\r\nB: c"}`, `which cannot`},
		"no ASCII":             {`"a":{"type":"string","x-mcp-header":"Région"}`, `which cannot`},
		"the same":             {`"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"A"}`, `two of its arguments have the x-mcp-header "A"`},
		"the same but case":    {`"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}`, `two of its arguments`},
		"the same, deeper":     {`"a":{"type":"string","x-mcp-header":"A"},"o":{"type":"object","properties":{"b":{"type":"string","x-mcp-header":"A"}}}`, `two of its arguments`},
		"an object":            {`"a":{"type":"object","x-mcp-header":"A"}`, `argument "a" has an x-mcp-header and is not a string`},
		"a number":             {`"a":{"type":"number","x-mcp-header":"A"}`, `is not a string, an integer or a boolean`},
		"nothing but null":     {`"a":{"type":["null"],"x-mcp-header":"A"}`, `is not a string`},
		"text or a list of it": {`"a":{"type":["string","array"],"x-mcp-header":"A"}`, `is not a string`},
	} {
		t.Run(name, func(t *testing.T) {
			// As more of the tool's JSON: the SDK takes no such schema. Of two members the later one counts.
			s := mcptest.New(mcptest.Tool{Name: "plain"}, mcptest.Tool{Name: "routed", Extra: fmt.Sprintf(`"inputSchema":{"type":"object","properties":{%s}}`, tt.properties)})
			for _, stateless := range []bool{true, false} {
				handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.MCP() }, &mcp.StreamableHTTPOptions{Stateless: stateless})
				web := httptest.NewServer(handler)
				t.Cleanup(web.Close)
				l := httpPool(t, upstream.Endpoint{URL: web.URL}).Catalog(t.Context())[0]
				want, tools := tt.want, 1
				if want == "" || !stateless {
					want, tools = "", 2
				}
				if l.Err != nil || len(l.Tools) != tools || !strings.Contains(l.Note, want) || want == "" && l.Note != "" {
					t.Errorf("stateless %v: %d tools, %q, %v; want %d, %q", stateless, len(l.Tools), l.Note, l.Err, tools, want)
				}
			}
		})
	}
}
