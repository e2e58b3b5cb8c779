package upstream

import (
	"encoding/json"
	"strconv"

	"golang.org/x/net/http/httpguts"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/stages"
)

// requestMeta is what every request of the newer era says of us. What agents say of themselves in front is none of a
// server's business and is not passed on.
func requestMeta(version string, impl *mcp.Implementation) []byte {
	b, err := json.Marshal(map[string]any{
		mcp.MetaKeyProtocolVersion:    version,
		mcp.MetaKeyClientInfo:         impl,
		mcp.MetaKeyClientCapabilities: struct{}{},
	})
	if err != nil {
		panic("upstream: internal error: " + err.Error())
	}
	return b[1 : len(b)-1]
}

// appendMeta appends the member _meta to an object that is open, where it is needed.
func (l *link) appendMeta(b []byte, trace stages.Trace) []byte {
	members := append([]byte(nil), l.meta...)
	for _, m := range []struct{ name, text string }{
		{"traceparent", trace.Parent}, {"tracestate", trace.State}, {"baggage", trace.Baggage},
	} {
		if m.text == "" {
			continue
		}
		value, err := json.Marshal(m.text)
		if err != nil {
			continue // text is always written
		}
		if len(members) > 0 {
			members = append(members, ',')
		}
		members = append(append(append(members, '"'), m.name...), `":`...)
		members = append(members, value...)
	}
	if l.gateway {
		if len(members) > 0 {
			members = append(members, ',')
		}
		members = strconv.AppendInt(append(members, `"`+hopsKey+`":`...), int64(trace.Hops)+1, 10)
	}
	if len(members) == 0 {
		return b
	}
	if len(b) > 1 {
		b = append(b, ',')
	}
	b = append(append(b, `"_meta":{`...), members...)
	return append(b, '}')
}

// withTrace adds the headers of a trace, for what stands before a server and reads no messages. What no header can hold
// is left out: agents write it.
func withTrace(headers map[string]string, trace stages.Trace) map[string]string {
	for _, h := range []struct{ name, text string }{
		{"Traceparent", trace.Parent}, {"Tracestate", trace.State}, {"Baggage", trace.Baggage},
	} {
		if h.text == "" || !httpguts.ValidHeaderFieldValue(h.text) {
			continue
		}
		if headers == nil {
			headers = map[string]string{}
		}
		headers[h.name] = h.text
	}
	return headers
}
