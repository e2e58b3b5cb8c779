package upstream

import (
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/stages"
)

// gatewayKey is the experimental capability by which gateways such as this one know each other.
const gatewayKey = "dev.mcsh/gateway"

// GatewayCapability is what a gateway says of itself among its experimental capabilities. The instance is what its pool
// has as [Options.Instance].
func GatewayCapability(instance string) map[string]any {
	return map[string]any{gatewayKey: map[string]any{"instance": instance}}
}

// gatewayBehind is the instance of the gateway at the other end of a session, or empty where there is something else.
func gatewayBehind(session *mcp.ClientSession) string {
	r := session.InitializeResult()
	if r == nil || r.Capabilities == nil {
		return ""
	}
	said, _ := r.Capabilities.Experimental[gatewayKey].(map[string]any)
	instance, _ := said["instance"].(string)
	return instance
}

// hopsKey is the member of _meta in which gateways count each other, and no other server sees.
const hopsKey = gatewayKey + "-hops"

// maxHops is how many gateways a call may go through. A pipeline through more of them goes round in a circle.
const maxHops = 8

// Hops reads from the _meta of a request how many gateways it has gone through. The error says that they are too many.
func Hops(meta map[string]any) (int, error) {
	n, _ := meta[hopsKey].(float64) // what is anything else does not come from a gateway
	if n >= maxHops {
		return 0, stages.OverLimit("hops", "call the tools of servers, not of gateways; the operator can take the gateway out of its own servers",
			"the call has gone through %d gateways, which may call each other in a circle", maxHops)
	}
	return int(max(0, n)), nil
}

// errGateway is the error of a server that turns out to be a gateway which is to be left out.
var errGateway = errors.New("it is a gateway")

// recognise refuses a server that turns out to be ourselves, and another gateway that nobody has configured: a
// pipeline that runs pipelines has no end, and shows every tool twice.
func (u *unit) recognise(session *mcp.ClientSession) error {
	switch instance := gatewayBehind(session); {
	case instance == "":
		return nil
	case instance == u.limits.Instance:
		return stages.Errorf(stages.Denied, "call the tools of the other servers: they are all here",
			"server %q is this gateway itself: %w", u.server.Name, errGateway)
	case u.server.Found:
		return stages.Errorf(stages.Denied, "call the tools of the other servers, or ask the operator to configure it",
			"server %q is another gateway, and was only found: %w", u.server.Name, errGateway)
	}
	return nil
}
