package upstream

import (
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/stages"
)

// gatewayKey is the experimental capability by which gateways like this one know each other.
const gatewayKey = "dev.mcsh/gateway"

// GatewayCapability is the experimental capability of a gateway. The instance is its pool's [Options.Instance].
func GatewayCapability(instance string) map[string]any {
	return map[string]any{gatewayKey: map[string]any{"instance": instance}}
}

// gatewayBehind is the instance of the gateway at the other end of a session, or empty if the server is not a gateway.
func gatewayBehind(session *mcp.ClientSession) string {
	r := session.InitializeResult()
	if r == nil || r.Capabilities == nil {
		return ""
	}
	said, _ := r.Capabilities.Experimental[gatewayKey].(map[string]any)
	instance, _ := said["instance"].(string)
	return instance
}

// HopsKey is the member of _meta in which gateways count hops. Servers that are no gateways do not get it.
const HopsKey = gatewayKey + "-hops"

// maxHops is how many gateways a call may pass. A call through more of them goes in a circle.
const maxHops = 8

// Hops reads from the _meta of a request how many gateways it has passed. The error says that there are too many.
func Hops(meta map[string]any) (int, error) {
	n, _ := meta[HopsKey].(float64) // other types do not come from a gateway
	if n >= maxHops {
		return 0, stages.OverLimit("hops", "call the tools of servers, not of gateways; the operator can take the gateway out of its own servers",
			"the call has gone through %d gateways, which may call each other in a circle", maxHops)
	}
	return int(max(0, n)), nil
}

// errGateway is the error of a server that is a gateway and is left out.
var errGateway = errors.New("it is a gateway")

// refuseGateway refuses a server that is this gateway itself, and another gateway that nobody has configured: a pipeline
// that runs pipelines has no end, and lists every tool twice.
func (sc *serverConn) refuseGateway(session *mcp.ClientSession) error {
	switch instance := gatewayBehind(session); {
	case instance == "":
		return nil
	case instance == sc.pool.options.Instance:
		return stages.Errorf(stages.Denied, "call the tools of the other servers: they are all here",
			"server %q is this gateway itself: %w", sc.server.Name, errGateway)
	case sc.server.Found:
		return stages.Errorf(stages.Denied, "call the tools of the other servers, or ask the operator to configure it",
			"server %q is another gateway, and was only found: %w", sc.server.Name, errGateway)
	}
	return nil
}
