package control_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/control"
)

// patience is how long a test waits for what happens at once.
const patience = 30 * time.Second

// A gateway is a source with fixed answers.
type gateway struct {
	signIns
	knownRuns
	knownServers
	id      string
	reloads atomic.Int32
	err     error // of a reload
}

func (g *gateway) Gateway() control.Gateway {
	return control.Gateway{ID: g.id, PID: os.Getpid(), Transport: "stdio", Configs: []string{}}
}

func (g *gateway) Servers() []control.Server {
	return []control.Server{{Name: "git", Status: "failed", Code: "SERVER_UNAVAILABLE", Where: "mcp.json:3"}}
}

func (g *gateway) Reload(context.Context) (control.Change, error) {
	g.reloads.Add(1)
	return control.Change{Added: []string{"a"}, Removed: []string{}, Restarted: []string{}}, g.err
}

// listen serves a gateway until the test ends.
func listen(t *testing.T, state, id string) *control.Socket {
	t.Helper()
	s, err := control.Listen(state, id)
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(&gateway{id: id})
	t.Cleanup(func() { s.Close() })
	return s
}

func find(t *testing.T, state string) map[string]*control.Client {
	t.Helper()
	found, err := control.Find(state)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// files lists the directory of the sockets.
func files(t *testing.T, state string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(state, "control", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestGateways: a client finds each gateway that lives, and nothing is left of the others.
func TestGateways(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("long/", 40)) // longer than the address of a socket
	if err := os.MkdirAll(long, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, state := range map[string]string{"short": t.TempDir(), "long": long} {
		if name == "long" {
			if _, err := os.Stat("/proc/self/fd"); err != nil {
				if _, err := control.Listen(state, "a"); err == nil || !strings.Contains(err.Error(), "name a shorter state directory") {
					t.Errorf("got %v", err)
				}
				continue
			}
		}
		if found := find(t, state); len(found) != 0 {
			t.Errorf("%s: there are gateways before the first one: %v", name, found)
		}
		var sockets []*control.Socket
		for i := range 32 {
			sockets = append(sockets, listen(t, state, fmt.Sprintf("g%02d", i)))
		}
		found := find(t, state)
		if len(found) != len(sockets) {
			t.Fatalf("%s: found %d of %d gateways", name, len(found), len(sockets))
		}
		for id, client := range found {
			if g, err := client.Gateway(t.Context()); err != nil || g.ID != id {
				t.Errorf("%s: %s answers %+v, %v", name, id, g, err)
			}
		}
		for _, s := range sockets[1:] {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := found["g31"].Gateway(t.Context()); !errors.Is(err, control.ErrEnded) {
			t.Errorf("%s: a gateway that has ended: %v", name, err)
		}
		if left := files(t, state); len(left) != 2 || len(find(t, state)) != 1 {
			t.Errorf("%s: left are %v", name, left)
		}
	}
}

// TestAnswers: a client gets what the gateway knows, and its errors.
func TestAnswers(t *testing.T) {
	state, source := t.TempDir(), &gateway{id: "a"}
	s, err := control.Listen(state, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Serve(source)
	client := find(t, state)["a"]
	servers, err := client.Servers(t.Context())
	if diff := cmp.Diff(source.Servers(), servers); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	change, err := client.Reload(t.Context())
	if err != nil || len(change.Added) != 1 || source.reloads.Load() != 1 {
		t.Errorf("got %+v, %v", change, err)
	}
	source.err = errors.New("no such file")
	if _, err := client.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "gateway a: POST /v1/reload: no such file") {
		t.Errorf("got %v", err)
	}
}

// TestSilent: a client does not wait without end for a gateway that does not answer, and the others are found beside it.
func TestSilent(t *testing.T) {
	t.Parallel() // it waits
	state := t.TempDir()
	s, err := control.Listen(state, "silent") // and nobody serves
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	listen(t, state, "a")
	found := find(t, state)
	if len(found) != 2 {
		t.Fatalf("found %v", found)
	}
	if _, err := found["silent"].Gateway(t.Context()); err == nil || !strings.Contains(err.Error(), "gateway silent: it has not answered within 30s") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := found["silent"].Reload(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after its caller has gone: %v", err)
	}
	if g, err := found["a"].Gateway(t.Context()); err != nil || g.ID != "a" {
		t.Errorf("got %+v, %v", g, err)
	}
}

// TestStarts: gateways that start while others look at the directory have a socket, and each is either found or not yet there.
func TestStarts(t *testing.T) {
	state := t.TempDir()
	listen(t, state, "first")
	stop, looked := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				looked <- nil
				return
			default:
			}
			found, err := control.Find(state)
			for _, client := range found {
				if _, asked := client.Gateway(t.Context()); !errors.Is(asked, control.ErrEnded) {
					err = errors.Join(err, asked)
				}
			}
			if err != nil {
				looked <- err
				return
			}
		}
	}()
	var starters sync.WaitGroup
	for i := range 8 {
		starters.Go(func() {
			for n := range 50 {
				id := fmt.Sprintf("g%d-%d", i, n)
				s, err := control.Listen(state, id)
				if err != nil {
					t.Errorf("%s: %v", id, err)
					return
				}
				s.Serve(&gateway{id: id})
				if err := s.Close(); err != nil {
					t.Errorf("%s: %v", id, err)
				}
			}
		})
	}
	starters.Wait()
	close(stop)
	if err := <-looked; err != nil {
		t.Error(err)
	}
	if left := files(t, state); len(left) != 2 {
		t.Errorf("left are %v", left)
	}
}

// A waitingGateway reloads until its caller is gone.
type waitingGateway struct {
	gateway
	entered chan struct{}
}

func (g *waitingGateway) Reload(ctx context.Context) (control.Change, error) {
	close(g.entered)
	<-ctx.Done()
	return control.Change{}, ctx.Err()
}

// TestEnds: a gateway that ends during a question has ended; one that lives without its socket has not.
func TestEnds(t *testing.T) {
	t.Parallel() // it waits
	state, source := t.TempDir(), &waitingGateway{entered: make(chan struct{})}
	s, err := control.Listen(state, "a")
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(source)
	client := find(t, state)["a"]
	asked := make(chan error, 1)
	go func() {
		_, err := client.Reload(context.WithoutCancel(t.Context()))
		asked <- err
	}()
	<-source.entered
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-asked; !errors.Is(err, control.ErrEnded) {
		t.Errorf("a gateway that ends during a question: %v", err)
	}

	listen(t, state, "b")
	if err := os.Remove(filepath.Join(state, "control", "b.sock")); err != nil {
		t.Fatal(err)
	}
	_, err = find(t, state)["b"].Gateway(t.Context())
	e, ok := errors.AsType[*control.Error](err)
	if !ok || e.Hint != "start it again" || err.Error() != "gateway b: its socket is gone" {
		t.Errorf("a gateway without its socket: %v", err)
	}
}

// TestDead: files of a process that was killed are removed, by the next gateway and by a client; other files stay.
func TestDead(t *testing.T) {
	state := t.TempDir()
	leave := func(id string) {
		t.Helper()
		dir := filepath.Join(state, "control")
		l, err := net.Listen("unix", filepath.Join(dir, id+".sock"))
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		l.Close()
		if err := os.WriteFile(filepath.Join(dir, id+".lock"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	listen(t, state, "a")
	leave("dead1")
	if found := find(t, state); len(found) != 1 || found["a"] == nil {
		t.Errorf("found %v", found)
	}
	leave("dead2")
	if err := os.WriteFile(filepath.Join(state, "control", "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	listen(t, state, "b")
	if left := files(t, state); len(left) != 5 {
		t.Errorf("left are %v", left)
	}
}

// TestRefused: neither side uses or changes a directory or socket that others own, may use or have put there.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(state, dir, socket string) error
		root  bool
		want  string
	}{
		"a directory that is open to others": {func(_, dir, _ string) error { return os.Chmod(dir, 0o755) }, false, "is open to others (mode 0755): chmod go="},
		"a directory that others may write":  {func(_, dir, _ string) error { return os.Chmod(dir, 0o770) }, false, "is open to others"},
		"a directory of somebody else":       {func(_, dir, _ string) error { return os.Chown(dir, 65534, -1) }, true, "belongs to user 65534"},
		"a link to a directory": {func(state, dir, _ string) error {
			moved := filepath.Join(state, "moved")
			return errors.Join(os.Rename(dir, moved), os.Symlink(moved, dir))
		}, false, "is a link"},
		"a file in place of the directory": {func(_, dir, _ string) error {
			return errors.Join(os.Rename(dir, dir+"2"), os.WriteFile(dir, nil, 0o600))
		}, false, "not a directory"},
		"a socket that is open to others": {func(_, _, socket string) error { return os.Chmod(socket, 0o666) }, false, "is open to others"},
		"a socket of somebody else":       {func(_, _, socket string) error { return os.Chown(socket, 65534, -1) }, true, "belongs to user 65534"},
		"a link to a socket": {func(_, _, socket string) error {
			return errors.Join(os.Rename(socket, socket+"2"), os.Symlink(socket+"2", socket))
		}, false, "is no socket"},
		"a file in place of a socket": {func(_, _, socket string) error {
			return errors.Join(os.Remove(socket), os.WriteFile(socket, nil, 0o600))
		}, false, "is no socket"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.root && os.Geteuid() != 0 {
				t.Skip("only root can give files away")
			}
			state := t.TempDir()
			dir := filepath.Join(state, "control")
			listen(t, state, "a")
			if err := test.spoil(state, dir, filepath.Join(dir, "a.sock")); err != nil {
				t.Fatal(err)
			}
			found, err := control.Find(state)
			if err == nil {
				_, err = found["a"].Gateway(t.Context())
			} else if s, err := control.Listen(state, "b"); err == nil {
				s.Close()
				t.Error("a gateway makes its socket there")
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestBounds: requests that are too large, too many or unknown are refused, and the others are answered after them.
func TestBounds(t *testing.T) {
	t.Parallel() // it waits
	state := t.TempDir()
	listen(t, state, "a")
	dial := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("unix", filepath.Join(state, "control", "a.sock"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(patience))
		return conn
	}
	for _, test := range []struct {
		request string
		status  int
	}{
		{"GET /v1/runs HTTP/1.1\r\nHost: x\r\n\r\n", 200},
		{"POST /v1/reload HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000000\r\n\r\n", 413},
		{"POST /v1/reload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + "ffffff\r\n" + strings.Repeat("x", 1000), 413},
		{"GET /v1/reload HTTP/1.1\r\nHost: x\r\n\r\n", 405},
		{"POST /v1/gateway HTTP/1.1\r\nHost: x\r\n\r\n", 405},
		{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 404},
		{"GET /v1/../v1/runs HTTP/1.1\r\nHost: x\r\n\r\n", 404},
		{"GET /v1/runs HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 20<<10) + "\r\n\r\n", 431},
		{"rubbish\r\n\r\n", 400},
	} {
		conn := dial()
		go io.WriteString(conn, test.request) // the gateway may close before the end
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != test.status || (res.Header.Get("Allow") != "") != (test.status == 405) {
			t.Errorf("%.60q: got %+v, %v, want %d", test.request, res, err, test.status)
		}
	}
	// Of 200 silent connections those beyond the bound are closed at once, and the others after some seconds.
	var silent []net.Conn
	for range 200 {
		silent = append(silent, dial())
	}
	for _, conn := range silent {
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a silent connection stays open: %v", err)
		}
	}
	client := find(t, state)["a"]
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		g, err := client.Gateway(t.Context())
		if err == nil && g.ID == "a" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the gateway does not answer after the silent connections: %v", err)
		}
	}
}

// TestRemote: a client sends its token to the gateway alone, and takes no answer for one of a gateway that is none.
func TestRemote(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"a redirection": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, "307"},
		"a page":       {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, "not that of a gateway"},
		"no such path": {func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, "404 Not Found: 404 page not found"},
		"a refusal":    {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "unknown token", http.StatusUnauthorized) }, "unknown token"},
		"a long refusal": {func(w http.ResponseWriter, _ *http.Request) {
			long := strings.Repeat("x", 1<<20)
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, `{"error": {"message": "it is %s", "hint": %q}}`, long, long)
		}, "it is xxx"},
		"no end":    {func(w http.ResponseWriter, _ *http.Request) { endless(w) }, "more than 16 MiB"},
		"an answer": {control.Handler(&gateway{id: "a"}, control.Viewer{}).ServeHTTP, ""},
	} {
		var token string
		server := httptest.NewServer(http.StripPrefix("/mesh/control", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			token = r.Header.Get("Authorization")
			test.answer(w, r)
		})))
		g, err := control.Remote(server.URL+"/mesh", "secret", http.DefaultTransport).Gateway(t.Context())
		var refused *control.Error
		switch {
		case token != "Bearer secret":
			t.Errorf("%s: the token is %q", name, token)
		case test.want == "" && (err != nil || g.ID != "a"), test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got %+v, %v, want %q", name, g, err, test.want)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: the error shows the token: %v", name, err)
		case errors.As(err, &refused) && len(refused.Message+refused.Hint) > 2000:
			t.Errorf("%s: the error has %d bytes", name, len(refused.Message+refused.Hint))
		}
		server.Close()
	}
	if elsewhere.Load() > 0 {
		t.Error("the client followed a redirection")
	}
}

// endless writes until nobody reads.
func endless(w io.Writer) {
	block := []byte(strings.Repeat(" ", 64<<10))
	for {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}
