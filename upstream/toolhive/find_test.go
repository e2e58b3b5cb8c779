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
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/upstream/toolhive/toolhivetest"
)

// closedPort is a port that nothing listens on.
func closedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

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
func impostor(t *testing.T, health http.HandlerFunc) int {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/health", health)
	mux.HandleFunc("/api/v1beta/version", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"version":"v9"}`)) })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.Listener.Addr().(*net.TCPAddr).Port
}

// TestFind looks for ToolHive where it is, and where something else is. Want is where it is found and who said so, or
// a part of the error.
func TestFind(t *testing.T) {
	api, socket := someone(t), toolhivetest.NewSocket(t)
	none := closedPort(t)
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
		{"a person says where", Options{URL: api.URL, URLFrom: "--toolhive", usualPort: none}, api.URL + " by --toolhive"},
		{"a person names a socket", Options{URL: socket.URL, URLFrom: "TOOLHIVE_API_URL"}, socket.URL + " by TOOLHIVE_API_URL"},
		{"a person is wrong: nothing else is tried", Options{URL: fmt.Sprintf("http://127.0.0.1:%d", none), Discovery: discovery}, "refused"},
		{"the file", Options{Discovery: discovery, usualPort: none}, api.URL + " by the discovery file " + discovery},
		{"the file before a guess", Options{Discovery: socket.Discovery(t), usualPort: api.Port()}, socket.URL},
		{"a file of the past", Options{Discovery: file(fmt.Sprintf("http://127.0.0.1:%d", none), "1"), usualPort: api.Port()}, api.URL + " by a guess"},
		{"the file of another start", Options{Discovery: file(api.URL, "1"), usualPort: none}, "its nonce is not that of the discovery file"},
		{"a file without a nonce", Options{Discovery: file(api.URL, ""), usualPort: none}, "it has no nonce"},
		{"a file that names a host", Options{Discovery: file(strings.Replace(api.URL, "127.0.0.1", "localhost", 1), "1"), usualPort: none}, "not http at a loopback address"},
		{"a file that names another machine", Options{Discovery: file("http://192.0.2.1:8080", "1"), usualPort: none}, "not http at a loopback address"},
		{"a file that names a pipe", Options{Discovery: file("npipe://thv", "1"), usualPort: none}, "named pipes"},
		{"a link", Options{Discovery: link, usualPort: none}, "not a regular file"},
		{"a file that others write", Options{Discovery: write(t, "{}", 0o622), usualPort: none}, "others may write it"},
		{"a file that is too long", Options{Discovery: write(t, strings.Repeat(" ", maxDiscovery+1), 0o600), usualPort: none}, "longer than"},
		{"no JSON", Options{Discovery: write(t, "x", 0o600), usualPort: none}, "it cannot be read"},
		{"a guess", Options{usualPort: api.Port()}, api.URL + " by a guess"},
		{"a guess at a host", Options{Host: "localhost", usualPort: api.Port()}, fmt.Sprintf("http://localhost:%d by a guess", api.Port())},
		{"something else answers", Options{usualPort: impostor(t, http.NotFound)}, "it answers /health with 404"},
		{"something else is healthy", Options{usualPort: impostor(t, ok(""))}, "it shows no nonce"},
		{"something with a long nonce", Options{usualPort: impostor(t, ok(strings.Repeat("x", maxNonce+1)))}, "it shows no nonce"},
		{"no containers", Options{usualPort: impostor(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(nonceHeader, "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		})}, "its container runtime is down"},
		{"a container", Options{Container: true, usualPort: none, scanPorts: ports{api.Port(), api.Port()}}, api.URL + " by a guess"},
		{"nothing in a container", Options{Container: true, usualPort: none, scanPorts: ports{none, none}}, "nothing answers"},
		{"outside nothing is scanned", Options{usualPort: none, scanPorts: ports{api.Port(), api.Port()}}, "refused"},
	}
	for _, tt := range tests {
		s := newSource(t, tt.o)
		_ = names(t, s)
		state := s.State()
		got := state.Place + " by " + state.How
		if state.Err != nil {
			got = state.Err.Error()
		}
		if !strings.Contains(got, tt.want) || (state.Err == nil) != (state.Version == "v0.44.0") {
			t.Errorf("%s: got %s (version %q), want %s", tt.name, got, state.Version, tt.want)
		}
	}
}

// TestScanRefusesToChoose has two ToolHives among the ports that are scanned.
func TestScanRefusesToChoose(t *testing.T) {
	a, b := someone(t), someone(t)
	o := Options{Container: true, usualPort: closedPort(t), scanPorts: ports{min(a.Port(), b.Port()), max(a.Port(), b.Port())}}
	if o.scanPorts.last-o.scanPorts.first > 2000 {
		t.Skip("the two ports are too far apart to be scanned")
	}
	if s := newSource(t, o); len(names(t, s)) != 1 || s.State().Err != nil { // one ToolHive on two ports shows one nonce
		t.Errorf("the same nonce: %v", s.State().Err)
	}
	b.SetNonce("another")
	s := newSource(t, o)
	if got := names(t, s); len(got) > 0 || !strings.Contains(fmt.Sprint(s.State().Err), "several ToolHives answer") {
		t.Errorf("got %q, %v", got, s.State().Err)
	}
}

// TestTold is what a person hears at a start.
func TestTold(t *testing.T) {
	none := closedPort(t)
	tests := []struct {
		name   string
		o      Options
		absent bool
		want   string // a part of it, or nothing
	}{
		{"no ToolHive is no news", Options{usualPort: none, Discovery: "/nowhere/server.json"}, true, ""},
		{"in a container neither, for who does not stay", Options{Container: true, usualPort: none, scanPorts: ports{none, none}}, true, ""},
		{"what a person said", Options{URL: fmt.Sprintf("http://127.0.0.1:%d", none), URLFrom: "--toolhive"}, false, "does not answer at http://127.0.0.1"},
		{"something else at a guess is no news", Options{usualPort: impostor(t, http.NotFound)}, true, ""},
		{"what the file says", Options{Discovery: write(t, "{}", 0o600), usualPort: none}, false, "does not begin with http://"},
	}
	for _, tt := range tests {
		var h heard
		tt.o.Told = h.hear
		s := newSource(t, tt.o)
		_ = names(t, s)
		got := strings.Join(h.all(), "\n")
		if !strings.Contains(got, tt.want) || tt.want == "" && got != "" || s.State().Absent != tt.absent {
			t.Errorf("%s: told %q, absent %t", tt.name, got, s.State().Absent)
		}
	}
}

// TestAdvice: a gateway in a container that finds nothing says once what to do.
func TestAdvice(t *testing.T) {
	none := closedPort(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var h heard
	s := newSource(t, Options{
		Container: true, usualPort: none, scanPorts: ports{none, none}, Interval: time.Millisecond,
		Told: func(text string) {
			h.hear(text)
			time.AfterFunc(50*time.Millisecond, cancel) // time for a second one, which must not come
		},
	})
	_ = names(t, s)
	if err := s.Watch(ctx, func() { t.Error("nothing has changed") }); err != nil {
		t.Fatal(err)
	}
	if got := h.all(); len(got) != 1 || !strings.Contains(got[0], "TOOLHIVE_API_URL") || !strings.Contains(got[0], "thv serve") || !strings.Contains(got[0], "unix://") {
		t.Errorf("told %q", got)
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
		{"the nonce was known", func(a *toolhivetest.API) Options { return Options{Discovery: a.Discovery(t), usualPort: 1} }, ""},
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

// TestAccept: whom a connection is believed.
func TestAccept(t *testing.T) {
	guessed, known := place{how: "a guess"}, place{how: "the file", nonce: "n"}
	tests := []struct {
		name   string
		place  place
		any    bool
		first  owner // of an earlier connection
		nonce  string
		who    owner
		want   string // of the error
		secret bool   // may be shown then
	}{
		{"ours", guessed, false, 0, "n", ownerOurs, "", true},
		{"another user's", guessed, false, 0, "n", ownerOther, "another user", false},
		{"another user's, from a container", guessed, true, 0, "n", ownerOther, "", false},
		{"not to be seen from a container", guessed, true, 0, "n", ownerUnknown, "", false},
		{"the nonce was known", known, false, 0, "n", ownerUnknown, "", true},
		{"another nonce than was known", known, false, 0, "m", ownerOurs, "its nonce is not that of the file", true},
		{"ours, and then another's", guessed, true, ownerOurs, "n", ownerOther, "has become another user's", true},
		{"another nonce than before", guessed, true, ownerOurs, "m", ownerOurs, "its nonce is not that", true},
	}
	for _, tt := range tests {
		a := newAPI(tt.place, trust{anyOwner: tt.any}, nil, nil)
		if tt.first != 0 {
			if err := a.accept("n", tt.first); err != nil {
				t.Fatal(err)
			}
		}
		err := a.accept(tt.nonce, tt.who)
		if (err == nil) != (tt.want == "") || err != nil && (!errors.Is(err, errNotToolHive) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v", tt.name, err)
		}
		if a.shows() != tt.secret {
			t.Errorf("%s: shows secrets: %t", tt.name, a.shows())
		}
	}
}

func TestOwnerOfConnection(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("owners can be told on Linux only")
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
		if got := ownerOf(conn); got != ownerOurs {
			t.Errorf("%s: got %d", address, got)
		}
		_, _, _ = conn.Close(), far.Close(), l.Close()
	}
}

const socketTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 31337 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:A1B2 01 00000000:00000000 00:00000000 00000000  1001        0 31338 1 0000000000000000 20 4 30 10 -1
   2: 0000000000000000FFFF00000100007F:1F91 0000000000000000FFFF00000100007F:A1B3 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0000000000000000 20 4 30 10 -1
   3: 00000000000000000000000001000000:1F92 00000000000000000000000001000000:A1B4 01 00000000:00000000 00:00000000 00000000    7        0 1 1 0
`

func TestSocketOwner(t *testing.T) {
	tests := []struct {
		local, remote string
		want          int // -1: not there
	}{
		{"127.0.0.1:8080", "127.0.0.1:41394", 1001},
		{"127.0.0.1:8081", "127.0.0.1:41395", 0},
		{"[::1]:8082", "[::1]:41396", 7},
		{"127.0.0.1:8080", "127.0.0.1:41395", -1},
		{"127.0.0.2:8080", "127.0.0.1:41394", -1},
	}
	for _, tt := range tests {
		uid, ok := socketOwner(socketTable, netip.MustParseAddrPort(tt.local), netip.MustParseAddrPort(tt.remote))
		if !ok {
			uid = -1
		}
		if uid != tt.want {
			t.Errorf("%s from %s: got %d, want %d", tt.local, tt.remote, uid, tt.want)
		}
	}
}

func FuzzSocketOwner(f *testing.F) {
	f.Add(socketTable)
	f.Fuzz(func(t *testing.T, table string) {
		_, ok := socketOwner(table, netip.MustParseAddrPort("127.0.0.1:8080"), netip.MustParseAddrPort("127.0.0.1:41394"))
		if ok && !strings.Contains(strings.ToUpper(table), "0100007F:1F90") && !strings.Contains(strings.ToUpper(table), "FFFF00000100007F:1F90") {
			t.Fatalf("found in %q", table)
		}
	})
}

// TestHosts: where a guess looks.
func TestHosts(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		want []string
	}{
		{Options{}, []string{"127.0.0.1"}},
		{Options{Host: "host.docker.internal", Container: true}, []string{"host.docker.internal"}},
	} {
		if diff := cmp.Diff(tt.want, tt.o.hosts(t.Context())); diff != "" {
			t.Error(diff)
		}
	}
	inside := (&Options{Container: true}).hosts(t.Context())
	if !slices.Contains(inside, "127.0.0.1") {
		t.Errorf("in a container: %q", inside)
	}
}
