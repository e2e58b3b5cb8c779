package upstream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// headers are the arguments that the tool's schema wants as headers of HTTP too ("x-mcp-header"), so that what stands
// before a server can route by them. It is nil for most tools.
func (t *tool) headers(args json.RawMessage) map[string]string {
	if !bytes.Contains(t.raw, []byte(`"x-mcp-header"`)) {
		return nil
	}
	var listed struct {
		InputSchema property `json:"inputSchema"`
	}
	if json.Unmarshal(t.raw, &listed) != nil {
		return nil
	}
	found := map[string]string{}
	listed.InputSchema.collect(args, found)
	return found
}

// property is as much of a schema as says which headers there are.
type property struct {
	Header     any                        `json:"x-mcp-header"`
	Properties map[string]json.RawMessage `json:"properties"`
}

// collect adds the headers of a value and of what is in it.
func (p *property) collect(value json.RawMessage, found map[string]string) {
	if name, ok := p.Header.(string); ok && httpguts.ValidHeaderFieldName(name) {
		if text, ok := headerText(value); ok {
			found[http.CanonicalHeaderKey("Mcp-Param-"+name)] = text
		}
	}
	var members map[string]json.RawMessage
	if len(p.Properties) == 0 || json.Unmarshal(value, &members) != nil {
		return
	}
	for name, schema := range p.Properties {
		var inner property
		if member, ok := members[name]; ok && json.Unmarshal(schema, &inner) == nil {
			inner.collect(member, found)
		}
	}
}

// maxHeaderInteger bounds the integers that go into a header: beyond it not every reader sees the same number.
const maxHeaderInteger = 1<<53 - 1

// headerText writes a text, boolean or integer as a header; what a header cannot hold goes in base64.
func headerText(value json.RawMessage) (string, bool) {
	const open, end = "=?base64?", "?="
	var v any
	if json.Unmarshal(value, &v) != nil {
		return "", false
	}
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		n := int64(v)
		return strconv.FormatInt(n, 10), float64(n) == v && n <= maxHeaderInteger && n >= -maxHeaderInteger
	case string:
		plain := strings.TrimSpace(v) == v && !strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' })
		if plain && !(strings.HasPrefix(v, open) && strings.HasSuffix(v, end)) {
			return v, true
		}
		return open + base64.StdEncoding.EncodeToString([]byte(v)) + end, true
	}
	return "", false
}
