package upstream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// headers are the arguments that the tool's schema wants as headers of HTTP too ("x-mcp-header"), so that what stands
// before a server can route by them. It is nil for most tools.
func (t *tool) headers(args json.RawMessage) map[string]string {
	schema := t.headerSchema()
	if schema == nil {
		return nil
	}
	found := map[string]string{}
	schema.collect(args, found)
	return found
}

// headerSchema is the tool's schema if it wants anything as a header, or nil.
func (t *tool) headerSchema() *property {
	if !bytes.Contains(t.raw, []byte(`"x-mcp-header"`)) {
		return nil
	}
	var listed struct {
		InputSchema property `json:"inputSchema"`
	}
	if json.Unmarshal(t.raw, &listed) != nil {
		return nil
	}
	return &listed.InputSchema
}

// checkHeaders refuses a tool that wants headers which cannot be: the protocol forbids to call it.
func (t *tool) checkHeaders() error {
	if schema := t.headerSchema(); schema != nil {
		return schema.check(fmt.Sprintf("%q is left out: ", t.name), map[string]bool{})
	}
	return nil
}

// check refuses headers of the properties that cannot be, or that are there already.
func (p *property) check(what string, seen map[string]bool) error {
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		var inner property
		if json.Unmarshal(p.Properties[name], &inner) != nil {
			continue // no schema; arguments are not checked either
		}
		if inner.Header != nil {
			header, _ := inner.Header.(string)
			key := strings.ToLower(header)
			switch {
			case !httpguts.ValidHeaderFieldName(header):
				return fmt.Errorf("%sx-mcp-header of its argument %q is %.40q, which cannot be the name of a header", what, name, fmt.Sprint(inner.Header))
			case seen[key]:
				return fmt.Errorf("%stwo of its arguments have the x-mcp-header %q", what, header)
			case !inner.fitsHeader():
				return fmt.Errorf("%sits argument %q has an x-mcp-header and is no text, integer or boolean", what, name)
			}
			seen[key] = true
		}
		if err := inner.check(what, seen); err != nil {
			return err
		}
	}
	return nil
}

// fitsHeader reports whether values of a property can stand in a header. One without a type may.
func (p *property) fitsHeader() bool {
	types, _ := p.Type.([]any)
	if one, ok := p.Type.(string); ok {
		types = []any{one}
	}
	null := 0
	for _, t := range types {
		switch t {
		case "string", "integer", "boolean":
		case "null":
			null++
		default:
			return false
		}
	}
	return null == 0 || null < len(types)
}

// property is as much of a schema as says which headers there are.
type property struct {
	Header     any                        `json:"x-mcp-header"`
	Type       any                        `json:"type"`
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
