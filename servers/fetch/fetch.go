// Package fetch is an MCP server that makes HTTP requests. It returns pages as Markdown, JSON and other text unchanged,
// and images as images. By default it reaches only public addresses, and it always limits the data. It knows nothing of
// pipelines.
package fetch

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/markdown"
	"github.com/mcsh-dev/mcsh/servers/tool"
)

// Options are the settings of the server. The zero value reaches public addresses only.
type Options struct {
	AllowPrivate bool          `json:"allow_private" usage:"reach every address, private and loopback ones too"`
	AllowHosts   []string      `json:"allow_hosts" usage:"reach hosts that match this glob, such as *.internal, at any address"`
	MaxBytes     int64         `json:"max_bytes" usage:"the largest body, where a call does not say; at most 64 MiB (default 5 MiB)"`
	Timeout      time.Duration `json:"timeout" usage:"of a call, such as 10s; at most 10m (default 30s)"`

	Resolver *net.Resolver `json:"-"` // nil: the system's
	Markdown Markdown      `json:"-"` // nil: in this process, which refuses large pages
}

const (
	defaultMaxBytes = 5 << 20
	hardMaxBytes    = 64 << 20 // the gateway accepts no larger result
	defaultTimeout  = 30 * time.Second
	longestTimeout  = 10 * time.Minute
)

const instructions = `HTTP requests to public addresses. fetch gets a URL; request does everything else. ` +
	`JSON comes as received, HTML as Markdown (as: "raw" for the source). A status of 400 and above is an error.`

// New makes the server. Idle connections are closed after a while.
func New(o Options) (*tool.Opened, error) {
	switch {
	case o.MaxBytes < 0 || o.MaxBytes > hardMaxBytes:
		return nil, fmt.Errorf("option max_bytes is %d, want 1 to %d, or 0 for %d", o.MaxBytes, hardMaxBytes, defaultMaxBytes)
	case o.Timeout < 0 || o.Timeout > longestTimeout:
		return nil, fmt.Errorf("option timeout is %v, want at most %v, or 0 for %v", o.Timeout, longestTimeout, defaultTimeout)
	}
	o.MaxBytes, o.Timeout = cmp.Or(o.MaxBytes, defaultMaxBytes), cmp.Or(o.Timeout, defaultTimeout)
	allowed, err := newHosts(o.AllowHosts)
	if err != nil {
		return nil, err
	}
	s := &server{maxBytes: o.MaxBytes, timeout: o.Timeout, http: newClient(o, allowed), markdown: o.Markdown}
	if s.markdown == nil {
		s.markdown = markdown.Bounded
	}
	return tool.Open(tool.Server{
		Name:         "fetch",
		Title:        "HTTP requests",
		Instructions: instructions,
		Tools:        []tool.Tool{s.fetch(), s.request()},
	})
}

type server struct {
	maxBytes int64
	timeout  time.Duration
	http     *http.Client
	markdown Markdown
}

// commonProperties are the arguments that both tools take.
const commonProperties = `
    "url": {"type": "string", "description": "An http or https URL."},
    "headers": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Request headers, such as {\"Accept\": \"text/csv\"}."},
    "max_bytes": {"type": "integer", "minimum": 1, "maximum": 67108864, "description": "The largest body that is accepted, decompressed; a longer one is an error. Default 5 MiB."},
    "as": {"type": "string", "enum": ["auto", "raw", "markdown"], "default": "auto", "description": "auto: HTML becomes Markdown, other text stays as it is. raw: HTML stays as it is, too. markdown: the body is taken for HTML whatever it says it is."}`

const fetchInput = `{
  "type": "object",
  "properties": {` + commonProperties + `
  },
  "required": ["url"],
  "additionalProperties": false
}`

const requestInput = `{
  "type": "object",
  "properties": {
    "method": {"type": "string", "enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"], "description": "The HTTP method."},
    "body": {"type": ["string", "object", "array"], "description": "A string is sent as it is; an object or array is sent as JSON."},` + commonProperties + `
  },
  "required": ["method", "url"],
  "additionalProperties": false
}`

func (s *server) fetch() tool.Tool {
	return tool.Tool{
		Name:        "fetch",
		Description: "Gets a URL. JSON comes as received, HTML as Markdown, other text as text, images as images. The final URL, status and type are in _meta.",
		Input:       fetchInput,
		Annotations: tool.ReadOnly(true),
		Call: tool.New(func(ctx context.Context, a fetchArgs) (*mcp.CallToolResult, error) {
			return s.do(ctx, requestArgs{fetchArgs: a, Method: http.MethodGet})
		}),
	}
}

func (s *server) request() tool.Tool {
	return tool.Tool{
		Name:        "request",
		Description: "Makes an HTTP request with any method and a body. The answer comes as with fetch; of HEAD, the status and headers come as JSON.",
		Input:       requestInput,
		Annotations: tool.Changing(true, true),
		Call:        tool.New(s.do),
	}
}

// do makes one request and presents the response.
func (s *server) do(ctx context.Context, a requestArgs) (*mcp.CallToolResult, error) {
	limit, err := a.check(s.maxBytes)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, errTooSlow)
	defer cancel()
	req, err := a.build(ctx)
	if err != nil {
		return nil, err
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	defer resp.Body.Close()
	res, err := s.present(resp, a.As, limit)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	return res, nil
}
