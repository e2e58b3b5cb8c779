package toollist

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

// maxHeaderDepth is how deep an argument that is also a header may be nested.
const maxHeaderDepth = 16

// A headerArgument is an argument that the tool's schema also wants as an HTTP header ("x-mcp-header"), so that proxies
// can route by it.
type headerArgument struct {
	path   []string // of names; more than one if it is nested, and not all of them if it is nested too deep
	header any
	types  any
}

// headerArguments are those of a tool; there are none for most.
func (t *Tool) headerArguments() []headerArgument {
	if !bytes.Contains(t.raw, []byte(`"x-mcp-header"`)) {
		return nil
	}
	var schema any
	_ = json.Unmarshal(t.input, &schema) // no schema wants no headers
	return headersIn(schema, nil)
}

// headersIn finds the arguments that are headers in the properties of a schema.
func headersIn(schema any, path []string) (found []headerArgument) {
	s, _ := schema.(map[string]any)
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		inner := path
		if len(path) <= maxHeaderDepth {
			inner = append(slices.Clip(path), name)
		}
		p, _ := properties[name].(map[string]any)
		if p["x-mcp-header"] != nil {
			found = append(found, headerArgument{inner, p["x-mcp-header"], p["type"]})
		}
		found = append(found, headersIn(p, inner)...)
	}
	return found
}

// HeadersOf returns the headers for arguments. It is nil for most tools.
func (t *Tool) HeadersOf(args json.RawMessage) map[string]string {
	if len(t.headers()) == 0 {
		return nil
	}
	found := map[string]string{}
	addHeaders(found, t.headers(), 0, args)
	return found
}

// addHeaders adds the headers in a value, to which the first depth names of all paths lead. Each object is decoded once,
// however many headers are in it: servers decide about the headers, and agents about the size of the arguments.
func addHeaders(found map[string]string, in []headerArgument, depth int, value json.RawMessage) {
	if depth > maxHeaderDepth {
		return // checkHeaders refuses such a tool where headers are sent
	}
	if len(in[0].path) == depth { // the value's own is before those in it
		name, _ := in[0].header.(string)
		if text, given := headerText(value); given && httpguts.ValidHeaderFieldName(name) {
			found[http.CanonicalHeaderKey("Mcp-Param-"+name)] = text
		}
		in = in[1:]
	}
	if len(in) == 0 {
		return
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(value, &members) // without members the arguments are not given
	for len(in) > 0 {
		name, n := in[0].path[depth], 1
		for n < len(in) && in[n].path[depth] == name {
			n++
		}
		if member, given := members[name]; given {
			addHeaders(found, in[:n], depth+1, member)
		}
		in = in[n:]
	}
}

// checkHeaders refuses a tool that wants impossible or repeated headers: the protocol forbids to call it.
func (t *Tool) checkHeaders() error {
	what := fmt.Sprintf("%q is left out: ", t.Name)
	seen := map[string]bool{}
	for _, a := range t.headers() {
		name := a.path[len(a.path)-1]
		header, _ := a.header.(string)
		key := strings.ToLower(header)
		switch {
		case len(a.path) > maxHeaderDepth:
			return fmt.Errorf("%san argument with an x-mcp-header is nested deeper than %d levels", what, maxHeaderDepth)
		case !httpguts.ValidHeaderFieldName(header):
			return fmt.Errorf("%sx-mcp-header of its argument %q is %.40q, which cannot be the name of a header", what, name, fmt.Sprint(a.header))
		case seen[key]:
			return fmt.Errorf("%stwo of its arguments have the x-mcp-header %q", what, header)
		case !a.fitsHeader():
			return fmt.Errorf("%sits argument %q has an x-mcp-header and is not a string, an integer or a boolean", what, name)
		}
		seen[key] = true
	}
	return nil
}

// fitsHeader reports whether a value of the argument can be a header. An argument without a type can.
func (a headerArgument) fitsHeader() bool {
	types, _ := a.types.([]any)
	if one, ok := a.types.(string); ok {
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

// maxHeaderInteger bounds integers in headers: beyond it readers may see different numbers.
const maxHeaderInteger = 1<<53 - 1

// headerText writes a string, boolean or integer as a header; text that a header cannot hold is written in base64.
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
