package sessions

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"golang.org/x/net/http/httpguts"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// RequestMeta is what every request of the newer era says about this client beside its capabilities: members of _meta. The words
// of agents about themselves are not passed on to servers.
func RequestMeta(version string, impl *mcp.Implementation) []byte {
	return withMember(withMember(nil, mcp.MetaKeyProtocolVersion, texts.JSON(version)), mcp.MetaKeyClientInfo, texts.JSON(impl))
}

// withMember returns the members of a JSON object with one more. Those that it gets stay as they are: all requests share them.
func withMember(members []byte, name, value string) []byte {
	more := `"` + name + `":` + value
	if len(members) > 0 {
		more = "," + more
	}
	return slices.Concat(members, []byte(more))
}

// Params makes the parameters of a request of their members, as written in parts, and _meta, if that is needed. A token
// of 0 asks for no progress. The parts are copied once: the memory that arguments count as has no room for more.
func (s *Session) Params(trace stages.Trace, token int64, members ...[]byte) json.RawMessage {
	return s.ParamsWith(s.Capabilities, trace, token, members...)
}

// ParamsWith is Params with capabilities for this request.
func (s *Session) ParamsWith(capabilities string, trace stages.Trace, token int64, members ...[]byte) json.RawMessage {
	meta := s.Meta
	if capabilities != "" {
		meta = withMember(meta, mcp.MetaKeyClientCapabilities, capabilities)
	}
	if token > 0 {
		meta = withMember(meta, "progressToken", strconv.FormatInt(token, 10))
	}
	for _, f := range traceFields(trace) {
		meta = withMember(meta, f.name, texts.JSON(f.text))
	}
	if s.hops != "" {
		meta = withMember(meta, s.hops, strconv.Itoa(trace.Hops+1))
	}
	parts := append([][]byte{[]byte("{")}, members...)
	if len(meta) > 0 {
		if len(members) > 0 {
			parts = append(parts, []byte(","))
		}
		parts = append(parts, []byte(`"_meta":{`), meta, []byte("}"))
	}
	return slices.Concat(append(parts, []byte("}"))...)
}

// A traceField is a field of a trace as requests have it.
type traceField struct{ name, text string }

// traceFields are the fields of a trace that are not empty.
func traceFields(trace stages.Trace) []traceField {
	fields := []traceField{{"traceparent", trace.Parent}, {"tracestate", trace.State}, {"baggage", trace.Baggage}}
	return slices.DeleteFunc(fields, func(f traceField) bool { return f.text == "" })
}

// WithTrace adds the headers of a trace, for proxies that do not read messages. Agents write the values: those that no
// header can hold are left out.
func WithTrace(headers map[string]string, trace stages.Trace) map[string]string {
	for _, f := range traceFields(trace) {
		if !httpguts.ValidHeaderFieldValue(f.text) {
			continue
		}
		if headers == nil {
			headers = map[string]string{}
		}
		headers[http.CanonicalHeaderKey(f.name)] = f.text
	}
	return headers
}
