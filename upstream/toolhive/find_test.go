package toolhive

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/sockets"
	"github.com/mcsh-dev/mcsh/upstream/toolhive/toolhivetest"
)

// nobody is a host where nothing listens: no test gets that port.
func nobody(*testing.T) []string { return []string{"127.0.0.1:1"} }

// host is where an API listens.
func host(a *toolhivetest.API) []string { return []string{strings.TrimPrefix(a.URL, "http://")} }

func write(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "server.json")
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	return name
}

// impostor is an HTTP server with something to say to /health and /api/v1beta/version.
func impostor(t *testing.T, health http.HandlerFunc) []string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/health", health)
	mux.HandleFunc("/api/v1beta/version", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"version":"v9"}`)) })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return []string{s.Listener.Addr().String()}
}

// TestFind looks for ToolHive where it is, and where something else is. Want is where it is found and who said so, or
// a part of the error.
func TestFind(t *testing.T) {
	api, socket := someone(t), toolhivetest.NewSocket(t)
	none := nobody(t)
	discovery := api.Discovery(t)
	link := filepath.Join(t.TempDir(), "link.json")
	if err := os.Symlink(discovery, link); err != nil {
		t.Fatal(err)
	}
	file := func(url, nonce string) string {
		return write(t, fmt.Sprintf(`{"url":%q,"nonce":%q}`, url, nonce), 0o600)
	}
	ok := func(nonce string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(nonceHeader, nonce)
			w.WriteHeader(http.StatusNoContent)
		}
	}
	tests := []struct {
		name string
		o    Options
		want string
	}{
		{"a person says where", Options{URL: api.URL, URLFrom: "--toolhive", hosts: none}, api.URL + " by --toolhive"},
		{"a person names a socket", Options{URL: socket.URL, URLFrom: "TOOLHIVE_API_URL"}, socket.URL + " by TOOLHIVE_API_URL"},
		{"a person is wrong: nothing else is tried", Options{URL: "http://" + none[0], Discovery: discovery}, "refused"},
		{"the file", Options{Discovery: discovery, hosts: none}, api.URL + " by the discovery file " + discovery},
		{"the file before a guess", Options{Discovery: socket.Discovery(t), hosts: host(api)}, socket.URL},
		{"a file of the past", Options{Discovery: file("http://"+none[0], "1"), hosts: host(api)}, api.URL + " by a guess"},
		{"the file of another start", Options{Discovery: file(api.URL, "1"), hosts: none}, "its nonce is not that of the discovery file"},
		{"a file without a nonce", Options{Discovery: file(api.URL, ""), hosts: none}, "it has no nonce"},
		{"a file that names a host", Options{Discovery: file(strings.Replace(api.URL, "127.0.0.1", "localhost", 1), "1"), hosts: none}, "not http at a loopback address"},
		{"a file that names another machine", Options{Discovery: file("http://192.0.2.1:8080", "1"), hosts: none}, "not http at a loopback address"},
		{"a file that names a pipe", Options{Discovery: file("npipe://thv", "1"), hosts: none}, "named pipes"},
		{"a link", Options{Discovery: link, hosts: none}, "it is a symbolic link"},
		{"a directory", Options{Discovery: t.TempDir(), hosts: none}, "it is not a regular file"},
		{"a file that others write", Options{Discovery: write(t, "{}", 0o622), hosts: none}, "others may write it"},
		{"a file that is too long", Options{Discovery: write(t, strings.Repeat(" ", maxDiscovery+1), 0o600), hosts: none}, "longer than"},
		{"no JSON", Options{Discovery: write(t, "x", 0o600), hosts: none}, "it cannot be read"},
		{"a guess", Options{hosts: host(api)}, api.URL + " by a guess"},
		{"the second guess", Options{hosts: append(nobody(t), host(api)...)}, api.URL + " by a guess"},
		{"something else answers", Options{hosts: impostor(t, http.NotFound)}, "it answers /health with 404"},
		{"something else is healthy", Options{hosts: impostor(t, ok(""))}, "it shows no nonce"},
		{"something with an endless proof", Options{hosts: impostor(t, ok(strings.Repeat("x", maxProof)))}, "has not proved to be ToolHive"},
		{"no containers", Options{hosts: impostor(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(nonceHeader, "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		})}, "its container runtime is down"},
	}
	for _, tt := range tests {
		s := newSource(t, tt.o)
		_ = names(t, s)
		state := s.State()
		got := state.Address + " by " + state.From
		if state.Err != nil {
			got = state.Err.Error()
		}
		if !strings.Contains(got, tt.want) || (state.Err == nil) != (state.Version == "v0.44.0") {
			t.Errorf("%s: got %s (version %q), want %s", tt.name, got, state.Version, tt.want)
		}
	}
}

// TestLog is what a person reads at a start.
func TestLog(t *testing.T) {
	none := nobody(t)
	tests := []struct {
		name   string
		o      Options
		absent bool
		want   string // a part of it, or nothing
	}{
		{"no ToolHive is no news", Options{hosts: none, Discovery: "/nowhere/server.json"}, true, ""},
		{"in a container neither, for who does not stay", Options{Container: true, hosts: none}, true, ""},
		{"what a person said", Options{URL: "http://" + none[0], URLFrom: "--toolhive"}, false, "does not answer at http://127.0.0.1"},
		{"something else at a guess is no news", Options{hosts: impostor(t, http.NotFound)}, true, ""},
		{"what the file says", Options{Discovery: write(t, "{}", 0o600), hosts: none}, false, "does not begin with http://"},
	}
	for _, tt := range tests {
		var h heard
		tt.o.Log = h.hear
		s := newSource(t, tt.o)
		_ = names(t, s)
		got := strings.Join(h.all(), "\n")
		if !strings.Contains(got, tt.want) || tt.want == "" && got != "" || s.State().Absent != tt.absent {
			t.Errorf("%s: logged %q, absent %t", tt.name, got, s.State().Absent)
		}
	}
}

// TestAdvice: a gateway in a container that finds nothing says once what to do.
func TestAdvice(t *testing.T) {
	none := nobody(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var h heard
	s := newSource(t, Options{
		Container: true, hosts: none, Interval: time.Millisecond,
		Log: func(text string) {
			h.hear(text)
			time.AfterFunc(50*time.Millisecond, cancel) // time for a second one, which must not come
		},
	})
	_ = names(t, s)
	if err := s.Watch(ctx, func() { t.Error("nothing has changed") }); err != nil {
		t.Fatal(err)
	}
	if got := h.all(); len(got) != 1 || !strings.Contains(got[0], "TOOLHIVE_API_URL") || !strings.Contains(got[0], "thv serve") {
		t.Errorf("logged %q", got)
	}
}

// TestContainerLoss: in a container, too, a ToolHive that was known is missed, and its return is reported.
func TestContainerLoss(t *testing.T) {
	none := nobody(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a := someone(t)
	file := a.Discovery(t)
	logged := make(chan string, 100)
	s := newSource(t, Options{
		Container: true, Discovery: file, hosts: none, Interval: time.Millisecond,
		Log: func(text string) { logged <- text },
	})
	_ = names(t, s)
	watched := make(chan error, 1)
	go func() { watched <- s.Watch(ctx, func() {}) }()
	move := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Error(err)
		}
	}
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() { move(file, file+".gone"); a.Fail(http.StatusInternalServerError) }, "ToolHive no longer answers at "},
		{func() { a.Fail(0); move(file+".gone", file) }, "ToolHive answers at "},
	} {
		step.do()
		select {
		case got := <-logged:
			if !strings.HasPrefix(got, step.want) {
				t.Errorf("logged %q, want %q", got, step.want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("not logged: %s", step.want)
		}
	}
	cancel()
	if err := <-watched; err != nil || len(logged) > 0 {
		t.Errorf("%v, and %d more", err, len(logged))
	}
}

// TestToken: who sees the token.
func TestToken(t *testing.T) {
	const token = "s3cret-token"
	tests := []struct {
		name string
		o    func(*toolhivetest.API) Options
		want string // the error, or empty
	}{
		{"a person says where", func(a *toolhivetest.API) Options { return Options{URL: a.URL} }, ""},
		{"the nonce was known", func(a *toolhivetest.API) Options { return Options{Discovery: a.Discovery(t), hosts: nobody(t)} }, ""},
		{"a wrong token", func(a *toolhivetest.API) Options {
			return Options{URL: a.URL, APIHeaders: http.Header{"Authorization": {"Bearer wrong"}}}
		}, "give it the right token"},
	}
	for _, tt := range tests {
		a := someone(t)
		a.SetToken(token)
		o := tt.o(a)
		if o.APIHeaders == nil {
			o.APIHeaders = http.Header{"Authorization": {"Bearer " + token}}
		}
		s := newSource(t, o)
		_ = names(t, s)
		if err := s.State().Err; (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) || err != nil && strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		for _, seen := range a.Tokens("/health") {
			if seen != "" {
				t.Errorf("%s: the token was sent before the proof", tt.name)
			}
		}
	}
}

// TestAccept: which connections are trusted, and which may carry secrets.
func TestAccept(t *testing.T) {
	if !ownersKnown {
		t.Skip("owners are known on Linux only")
	}
	guessed, inside, known := address{from: "a guess"}, address{from: "a guess", anyOwner: true}, address{from: "the file", nonce: "n"}
	ours, others := os.Geteuid(), os.Geteuid()+1
	tests := []struct {
		name    string
		address address
		nonce   string
		uid     int // -1: not known
		want    string
		certain bool
	}{
		{"ours", guessed, "n", ours, "", true},
		{"root's", guessed, "n", 0, "", true},
		{"another user's", guessed, "n", others, "another user", true},
		{"an owner that is not seen", guessed, "n", -1, "owner cannot be seen", true},
		{"another user's, from a container", inside, "n", others, "", false},
		{"an owner that is not seen from a container", inside, "n", -1, "", false},
		{"the nonce was known", known, "n", -1, "", true},
		{"another nonce than was known", known, "m", ours, "its nonce is not that of the file", true},
	}
	for _, tt := range tests {
		err := tt.address.accept(tt.nonce, tt.uid, tt.uid >= 0)
		if (err == nil) != (tt.want == "") || err != nil && (!errors.Is(err, errNotToolHive) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v", tt.name, err)
		}
		if tt.address.certain() != tt.certain {
			t.Errorf("%s: certain: %t", tt.name, !tt.certain)
		}
	}
}

func TestOwnerOfConnection(t *testing.T) {
	if !ownersKnown {
		t.Skip("owners are known on Linux only")
	}
	for _, address := range []string{"127.0.0.1:0", "[::]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("%s: %v", address, err)
			continue
		}
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", l.Addr().(*net.TCPAddr).Port), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if uid, ok := ownerOf(conn); !ok || !isOurs(uid) {
			t.Errorf("%s: got %d, %t", address, uid, ok)
		}
		_, _, _ = conn.Close(), far.Close(), l.Close()
	}
}

func TestSocketOwner(t *testing.T) {
	at := netip.MustParseAddrPort
	list := []sockets.Socket{
		{Local: at("127.0.0.1:8080"), Remote: at("0.0.0.0:0"), State: sockets.Listening, User: 1000},
		{Local: at("127.0.0.1:8080"), Remote: at("127.0.0.1:41394"), State: sockets.Connected, User: 1001},
		{Local: at("127.0.0.1:8081"), Remote: at("127.0.0.1:41395"), State: sockets.Connected},
		{Local: at("[::1]:8082"), Remote: at("[::1]:41396"), State: sockets.Connected, User: 7},
		{Local: at("127.0.0.1:8083"), Remote: at("127.0.0.1:41397"), State: "06", User: 8},
	}
	for _, tt := range []struct {
		local, remote string
		want          int // -1: not there
	}{
		{"127.0.0.1:8080", "127.0.0.1:41394", 1001},
		{"127.0.0.1:8081", "127.0.0.1:41395", 0},
		{"[::1]:8082", "[::1]:41396", 7},
		{"127.0.0.1:8080", "127.0.0.1:41395", -1},
		{"127.0.0.2:8080", "127.0.0.1:41394", -1},
		{"127.0.0.1:41394", "127.0.0.1:8080", -1},
		{"127.0.0.1:8080", "0.0.0.0:0", -1},
		{"127.0.0.1:8083", "127.0.0.1:41397", -1},
	} {
		uid, ok := socketOwner(list, at(tt.local), at(tt.remote))
		if !ok {
			uid = -1
		}
		if uid != tt.want {
			t.Errorf("%s from %s: got %d, want %d", tt.local, tt.remote, uid, tt.want)
		}
	}
}

// TestGuesses: from a container, the names of the machine are tried too.
func TestGuesses(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{}, "http://127.0.0.1:8080"},
		{Options{Container: true}, "http://127.0.0.1:8080 http://host.docker.internal:8080 http://host.containers.internal:8080"},
	} {
		var got []string
		for _, a := range tt.o.addresses() {
			got = append(got, a.String())
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("container %t: %q", tt.o.Container, got)
		}
	}
}

// heard is what a source has logged.
type heard struct {
	mu   sync.Mutex
	text []string
}

func (h *heard) hear(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = append(h.text, text)
}

func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.text...)
}

func newSource(t *testing.T, o Options) *Source {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.disconnect)
	return s
}

// names looks at the servers of a source.
func names(t *testing.T, s *Source) []string {
	t.Helper()
	servers, err := s.Servers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, server := range servers {
		list = append(list, server.Name)
	}
	return list
}

// someone is an API with one workload.
func someone(t *testing.T) *toolhivetest.API {
	a := toolhivetest.New(t)
	a.Set(toolhivetest.Running("alpha", "http://127.0.0.1:1/mcp"))
	return a
}
