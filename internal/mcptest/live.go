package mcptest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Live is a server with resources whose updates clients may subscribe to, except those whose URIs end with "refused". Its tools
// do the same as its methods, for clients: touch {"uri"}, and subscribed.
type Live struct {
	*Upstream

	mu         sync.Mutex
	subscribed []string // URIs, each as often as it is subscribed to; guarded by mu
	asked      int      // requests to subscribe; guarded by mu
}

// NewLive makes a server with these resources.
func NewLive(uris ...string) *Live {
	l := &Live{}
	l.Upstream = newUpstream(&mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{
			Tools:     &mcp.ToolCapabilities{ListChanged: true},
			Resources: &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
		},
		SubscribeHandler:   func(_ context.Context, r *mcp.SubscribeRequest) error { return l.subscribe(r.Params.URI) },
		UnsubscribeHandler: func(_ context.Context, r *mcp.UnsubscribeRequest) error { return l.unsubscribe(r.Params.URI) },
	})
	l.Add(Tool{Name: "touch", Do: func(args map[string]any) (string, error) {
		l.Touch(fmt.Sprint(args["uri"]))
		return "touched", nil
	}})
	l.Add(Tool{Name: "pid", ReadOnly: true, Do: func(map[string]any) (string, error) { return strconv.Itoa(os.Getpid()), nil }})
	l.Add(Tool{Name: "subscribed", ReadOnly: true, Do: func(map[string]any) (string, error) { return strings.Join(l.Subscribed(), " "), nil }})
	for _, uri := range uris {
		l.server.AddResource(&mcp.Resource{URI: uri, Name: uri}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "now"}}}, nil
		})
	}
	return l
}

// Touch reports an update of a resource.
func (l *Live) Touch(uri string) {
	_ = l.server.ResourceUpdated(context.Background(), &mcp.ResourceUpdatedNotificationParams{URI: uri}) // it cannot fail
}

// Subscribed returns the URIs that clients are subscribed to, sorted, each as often as it is.
func (l *Live) Subscribed() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(slices.Values(l.subscribed))
}

// Asked counts the requests to subscribe.
func (l *Live) Asked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

func (l *Live) subscribe(uri string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if strings.HasSuffix(uri, "refused") {
		return mcp.ResourceNotFoundError(uri)
	}
	l.subscribed = append(l.subscribed, uri)
	return nil
}

func (l *Live) unsubscribe(uri string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.subscribed, uri); i >= 0 {
		l.subscribed = slices.Delete(l.subscribed, i, i+1)
	}
	return nil
}
