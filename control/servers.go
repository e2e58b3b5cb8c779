package control

import (
	"context"
	"time"
)

// Servers answers for the servers of a gateway, and directs them. Its methods may be called concurrently. A name that no server has
// is an error (404).
type Servers interface {
	// ShowServers returns what is known of a server, or of all for "", sorted by name. It waits for none.
	ShowServers(ctx context.Context, v Viewer, server string) ([]ServerDetail, error)

	// RestartServer ends the sessions with a server when their calls in flight have ended, and starts it anew.
	RestartServer(ctx context.Context, server string) error

	// DisableServer takes away what a server offers, and ends its sessions when their calls in flight have ended, until
	// EnableServer or the end of the gateway.
	DisableServer(ctx context.Context, server string) error
	EnableServer(ctx context.Context, server string) error
}

// A ServerDetail describes a server of a gateway. Only viewers of results have the fields marked as data.
type ServerDetail struct {
	Server
	Transport string     `json:"transport"`          // stdio, http or built in
	Protocol  string     `json:"protocol,omitempty"` // that its session speaks
	Started   *time.Time `json:"started,omitempty"`  // of its session
	SignIn    bool       `json:"sign_in,omitempty"`  // to sign in would help
	Tools     *int       `json:"tools,omitempty"`    // nil: not known
	Changed   int        `json:"changed,omitempty"`  // tools that are new or have changed since the first list

	Calls  int64   `json:"calls"`
	Errors int64   `json:"errors"`
	P50    float64 `json:"p50_ms,omitempty"` // half of the calls took at most this long
	P95    float64 `json:"p95_ms,omitempty"` // 95 of 100 calls took at most this long

	Why    string `json:"why,omitempty"`    // why it has failed; data
	Hint   string `json:"hint,omitempty"`   // data
	Stderr string `json:"stderr,omitempty"` // its last lines; data
}

// A ServerRequest names a server.
type ServerRequest struct {
	Server string `json:"server,omitempty"`
}

// serverRoutes are the requests about single servers.
func serverRoutes(v Viewer) []route {
	act := func(how func(Source, context.Context, string) error) func(Source, context.Context, ServerRequest) (struct{}, error) {
		return func(s Source, ctx context.Context, r ServerRequest) (struct{}, error) {
			return struct{}{}, how(s, ctx, r.Server)
		}
	}
	return []route{
		post("/v1/servers/show", func(s Source, ctx context.Context, r ServerRequest) ([]ServerDetail, error) {
			return s.ShowServers(ctx, v, r.Server)
		}),
		post("/v1/servers/restart", act(Source.RestartServer)),
		post("/v1/servers/disable", act(Source.DisableServer)),
		post("/v1/servers/enable", act(Source.EnableServer)),
	}
}
