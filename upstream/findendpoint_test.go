package upstream_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/remote"
)

// TestWrongPath: where there is no server at the address, but one at the usual path of the host, the error names that. It is
// asked once, and what is there besides is not taken for a server.
func TestWrongPath(t *testing.T) {
	served := func(o *mcp.StreamableHTTPOptions) http.Handler {
		u := mcptest.New(mcptest.Tool{Name: "one"})
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return u.MCP() }, o)
	}
	answer := func(code int, media, text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			w.WriteHeader(code)
			w.Write([]byte(text))
		})
	}
	const jsonrpc = `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`
	for _, tt := range []struct {
		name    string
		handler http.Handler
		path    string
		hint    string
		asked   int32
	}{
		{"with sessions", served(nil), "/nope", "there is an MCP server at URL/mcp: write that as url", 1},
		{"without", served(&mcp.StreamableHTTPOptions{Stateless: true}), "/nope?key=secret", "there is an MCP server at URL/mcp: write that as url", 1},
		{"it wants a session", answer(400, "application/json", jsonrpc), "/", "there is an MCP server at URL/mcp: write that as url", 1},
		{"it wants sign-in", answer(401, "text/plain", "who are you?"), "/nope", "there is an MCP server at URL/mcp: write that as url", 1},
		{"a stream", answer(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"), "/sse", "there is an MCP server at URL/mcp: write that as url", 1},
		{"an echo", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }), "/nope", "check the path of url: most servers answer at /mcp", 1},
		{"a page that tells of it", answer(200, "text/html", "<pre>"+jsonrpc+"</pre>"), "/nope", "check the path of url: most servers answer at /mcp", 1},
		{"a page", answer(200, "text/html", "<html>hello</html>"), "/nope", "check the path of url: most servers answer at /mcp", 1},
		{"nothing", answer(404, "text/plain", "no"), "/nope", "check the path of url: most servers answer at /mcp", 1},
		{"it was there", answer(404, "text/plain", "no"), "/mcp/", "check the path of url: most servers answer at /mcp", 0},
	} {
		for name, kept := range map[string]remote.Logins{"": nil, ", with logins": newLogins(t)} {
			t.Run(tt.name+name, func(t *testing.T) {
				t.Parallel()
				var asked atomic.Int32
				mux := http.NewServeMux()
				mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPost {
						asked.Add(1)
					}
					if r.URL.RawQuery != "" {
						t.Errorf("the query went to another path: %s", r.URL.RawQuery)
					}
					tt.handler.ServeHTTP(w, r)
				})
				s := httptest.NewServer(mux)
				t.Cleanup(s.Close)
				_, err := httpPool(t, upstream.Endpoint{URL: s.URL + tt.path, Name: "s", Logins: kept}).Tool(t.Context(), "s", "one")
				wantError(t, err, stages.ServerUnavailable, "404", strings.ReplaceAll(tt.hint, "URL", s.URL))
				if asked.Load() != tt.asked {
					t.Errorf("it was asked %d times, want %d", asked.Load(), tt.asked)
				}
			})
		}
	}
}
