package docker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

// A guard is the proxy that SECURITY.md tells operators to put before an engine's socket.
type guard struct {
	allowed []call
	engine  http.Handler

	mu      sync.Mutex
	used    []string // rows
	refused []string
}

// A call is one row of the table in SECURITY.md.
type call struct {
	row, method string
	path        *regexp.Regexp
}

var versionPrefix = regexp.MustCompile(`^/v1\.\d+`)

// allowedCalls reads the table.
func allowedCalls(t *testing.T) []call {
	t.Helper()
	text, err := os.ReadFile("../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = bytes.Cut(text, []byte("## The container engine's socket"))
	text, _, _ = bytes.Cut(text, []byte("\n## "))
	quoted := regexp.MustCompile("`([^`]+)`")
	var calls []call
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		for _, method := range quoted.FindAllStringSubmatch(cells[1], -1) {
			for _, path := range quoted.FindAllStringSubmatch(cells[2], -1) {
				pattern := regexp.QuoteMeta(path[1])
				pattern = strings.NewReplacer(`\{name\}`, ".+", `\{id\}`, "[^/]+").Replace(pattern)
				calls = append(calls, call{method[1] + " " + path[1], method[1], regexp.MustCompile("^" + pattern + "$")})
			}
		}
	}
	return calls
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := versionPrefix.ReplaceAllString(r.URL.Path, "")
	i := slices.IndexFunc(g.allowed, func(c call) bool { return c.method == r.Method && c.path.MatchString(path) })
	why := "no such row"
	if i >= 0 && g.allowed[i].row == "POST /containers/create" {
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if why = "its body"; err != nil || !harmless(body) {
			i = -1
		}
	}
	g.mu.Lock()
	if i < 0 {
		g.refused = append(g.refused, r.Method+" "+path+": "+why)
	} else {
		g.used = append(g.used, g.allowed[i].row)
	}
	g.mu.Unlock()
	if i < 0 {
		http.Error(w, `{"message":"refused by the guard"}`, http.StatusForbidden)
		return
	}
	g.engine.ServeHTTP(w, r)
}

// harmless reports whether a container that is made so cannot reach what is the host's.
func harmless(body []byte) bool {
	var c struct{ HostConfig container.HostConfig }
	if json.Unmarshal(body, &c) != nil {
		return false
	}
	h := c.HostConfig
	foreign := slices.ContainsFunc(h.Mounts, func(m mount.Mount) bool { return m.Type != mount.TypeVolume || m.Source != "" })
	return !foreign && len(h.Binds) == 0 && len(h.VolumesFrom) == 0 && !h.Privileged && len(h.CapAdd) == 0 && len(h.Devices) == 0 &&
		!h.NetworkMode.IsHost() && !h.PidMode.IsHost() && !h.IpcMode.IsHost() && !h.UTSMode.IsHost() && !h.UsernsMode.IsHost()
}

// engineProxy passes on to the engine what it is asked.
func engineProxy(t *testing.T) http.Handler {
	t.Helper()
	host, err := url.Parse(api.DaemonHost())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	proxy.FlushInterval = -1
	proxy.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", host.Path)
	}}
	return proxy
}

// serveEngine returns the address of a socket behind which h is the engine.
func serveEngine(t *testing.T, h http.Handler) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "engine.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h}
	go server.Serve(listener) // it ends with Close
	t.Cleanup(func() { server.Close() })
	return "unix://" + socket
}

// TestCalls runs commands through a proxy that permits what SECURITY.md lists: nothing more is needed, and nothing
// else is listed.
func TestCalls(t *testing.T) {
	needLocalEngine(t)
	g := &guard{allowed: allowedCalls(t)}
	if len(g.allowed) < 10 {
		t.Fatalf("SECURITY.md lists %d calls, want its table", len(g.allowed))
	}
	g.engine = engineProxy(t)
	o := options()
	o.Host = serveEngine(t, g)
	pool := newPool(t, o)
	works(t, pool, "a")
	works(t, pool, "b")
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.refused) > 0 {
		t.Errorf("SECURITY.md does not list calls that the gateway makes: %q", g.refused)
	}
	for _, c := range g.allowed {
		// The end of a removal that another call has begun is waited for, and that is not always so.
		if !slices.Contains(g.used, c.row) && !strings.HasSuffix(c.row, "/wait") && !strings.HasPrefix(c.row, "HEAD") && !strings.HasPrefix(c.row, "GET /_ping") {
			t.Errorf("SECURITY.md lists %s, which the gateway did not need", c.row)
		}
	}
}
