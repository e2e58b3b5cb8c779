package gateway

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// traceOf is the trace that a call belongs to: as its _meta says, else as the headers of the request do. The call has
// been let in, so that its hops are known to be few enough.
func traceOf(req *mcp.CallToolRequest) stages.Trace {
	find := func(name string) string {
		text, _ := req.Params.Meta[name].(string)
		if text == "" && req.Extra != nil {
			text = req.Extra.Header.Get(name)
		}
		if len(text) > maxTrace {
			return ""
		}
		return text
	}
	hops, _ := upstream.Hops(req.Params.Meta) // too many: [Gateway.serve] has refused them
	return stages.Trace{Parent: find("traceparent"), State: find("tracestate"), Baggage: find("baggage"), Hops: hops}
}

// maxTrace bounds one member of a trace: the limit of baggage, which is the longest of them.
const maxTrace = 8192
