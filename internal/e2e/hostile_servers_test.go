//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
)

// planTimeout is the timeout of hostile runs, in seconds.
const planTimeout = 5

// patterns is a server whose schemas have patterns that compile to far more than they say.
func patterns() *mcptest.Upstream {
	u := mcptest.New()
	for i := range 10 {
		var properties strings.Builder
		for j := range 3_000 {
			fmt.Fprintf(&properties, `,"p%d":{"type":"string","pattern":"((a{1,30}){1,30})%d"}`, j, j)
		}
		u.Add(mcptest.Tool{Name: fmt.Sprintf("get_%d", i), ReadOnly: true, Text: "1", Schema: `{"type":"object","properties":{` + properties.String()[1:] + `}}`})
	}
	return u
}

// refs is a server whose schemas are references to references.
func refs() *mcptest.Upstream {
	u := mcptest.New()
	var definitions strings.Builder
	for i := range 300 {
		fmt.Fprintf(&definitions, `"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}},`, i, i+1, i+1)
	}
	schema := `{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{` + definitions.String() + `"d300":{"type":"string"}}}`
	for i := range 200 {
		u.Add(mcptest.Tool{Name: fmt.Sprintf("get_%d", i), ReadOnly: true, Text: "1", Schema: schema, Extra: `"outputSchema":` + schema})
	}
	return u
}

// enums is a server whose arguments are compared with very much.
func enums() *mcptest.Upstream {
	values := make([]string, 40_000)
	for i := range values {
		values[i] = fmt.Sprintf("[%d,%d,0]", i, i)
	}
	properties := make([]string, 300)
	for i := range properties {
		properties[i] = fmt.Sprintf(`"^(a*)*(a|b)*%d$":{"type":"integer"}`, i)
	}
	return mcptest.New(
		mcptest.Tool{Name: "take_items", ReadOnly: true, Text: "1", Schema: `{"type":"object","properties":{"items":{"type":"array","items":{"enum":[` + strings.Join(values, ",") + `]}}}}`},
		mcptest.Tool{Name: "take_keys", ReadOnly: true, Text: "1", Schema: `{"type":"object","patternProperties":{` + strings.Join(properties, ",") + `}}`},
	)
}

// manyTools is a server with very many tools.
func manyTools() *mcptest.Upstream {
	u := mcptest.New()
	for i := range 5_000 {
		u.Add(mcptest.Tool{Name: fmt.Sprintf("get_%0120d", i), ReadOnly: true, Text: "1", Description: strings.Repeat("much is said ", 60)})
	}
	return u
}

// largeResults is a server in the test's own process, which has the memory for it. Its tool answers with 60 MiB.
func largeResults(t *testing.T) object {
	text := strings.Repeat("x", 60<<20)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		parts := []string{`{}`}
		switch m.Method {
		case "initialize":
			parts = []string{`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"large","version":"1"}}`}
		case "tools/list":
			parts = []string{`{"tools":[{"name":"get","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`}
		case "tools/call":
			parts = []string{`{"content":[{"type":"text","text":"`, text, `"}]}`}
		case "server/discover":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`, m.ID)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":`, m.ID)
		for _, part := range append(parts, "}") {
			_, _ = io.WriteString(w, part) // the reader may have had enough
		}
	}))
	t.Cleanup(s.Close)
	return object{"large": object{"type": "http", "url": s.URL}}
}
