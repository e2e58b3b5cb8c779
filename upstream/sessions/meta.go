package sessions

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"golang.org/x/net/http/httpguts"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/questions"
)

// RequestMeta is what every request of the newer era says about this client. The words of agents about themselves are not
// passed on to servers.
func RequestMeta(version string, impl *mcp.Implementation, roots bool) map[string]any {
	return map[string]any{
		mcp.MetaKeyProtocolVersion:    version,
		mcp.MetaKeyClientInfo:         impl,
		mcp.MetaKeyClientCapabilities: questions.Declared{}.Meta(roots),
	}
}

// Params makes the parameters of a request of their members, as written in parts, and _meta, if that is needed. A token
// of 0 asks for no progress. The parts are copied once: the memory that arguments count as has no room for more.
func (s *Session) Params(trace stages.Trace, token int64, members ...[]byte) json.RawMessage {
	return s.ParamsWith(nil, trace, token, members...)
}

// ParamsWith is params with other members of _meta for this request.
func (s *Session) ParamsWith(own map[string]any, trace stages.Trace, token int64, members ...[]byte) json.RawMessage {
	meta := map[string]any{}
	maps.Copy(meta, s.Meta)
	maps.Copy(meta, own)
	if token > 0 {
		meta["progressToken"] = token
	}
	for name, text := range traceFields(trace) {
		meta[name] = text
	}
	if s.hops != "" {
		meta[s.hops] = trace.Hops + 1
	}
	parts := append([][]byte{[]byte("{")}, members...)
	if len(meta) > 0 {
		if len(members) > 0 {
			parts = append(parts, []byte(","))
		}
		parts = append(parts, []byte(`"_meta":`+texts.JSON(meta)))
	}
	return slices.Concat(append(parts, []byte("}"))...)
}

// traceFields are the fields of a trace that are not empty.
func traceFields(trace stages.Trace) map[string]string {
	fields := map[string]string{"traceparent": trace.Parent, "tracestate": trace.State, "baggage": trace.Baggage}
	maps.DeleteFunc(fields, func(_, text string) bool { return text == "" })
	return fields
}

// WithTrace adds the headers of a trace, for proxies that do not read messages. Agents write the values: those that no
// header can hold are left out.
func WithTrace(headers map[string]string, trace stages.Trace) map[string]string {
	for name, text := range traceFields(trace) {
		if !httpguts.ValidHeaderFieldValue(text) {
			continue
		}
		if headers == nil {
			headers = map[string]string{}
		}
		headers[http.CanonicalHeaderKey(name)] = text
	}
	return headers
}
