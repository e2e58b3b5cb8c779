package control

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Bounds of the clients of a socket.
const (
	maxConnections = 64
	headerWait     = 5 * time.Second
	requestWait    = 10 * time.Second
	idleWait       = 10 * time.Second
	headerBytes    = 8 << 10
	refuseWait     = 100 * time.Millisecond
)

// A Socket is the control socket of this process. It must be closed.
type Socket struct {
	id       string
	dir      *directory
	lock     *os.File
	listener *net.UnixListener

	pages  http.Handler // below [PagesPath]; nil: none
	server *http.Server
	served chan struct{} // closed at the end of Serve
}

// Listen makes a socket for the gateway with an id in a state directory, which must exist. It first removes what dead gateways
// have left there.
func Listen(state, id string) (*Socket, error) {
	if err := os.Mkdir(filepath.Join(state, directoryName), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("making the directory of control sockets: %w", err)
	}
	dir, err := openDirectory(state)
	if err != nil {
		return nil, fmt.Errorf("opening the directory of control sockets: %w", err)
	}
	_, _ = dir.living() // a file that cannot be removed does no harm
	s := &Socket{id: id, dir: dir}
	if err := s.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("making the control socket: %w", err), dir.Close())
	}
	return s, nil
}

// open takes the lock and makes the socket.
func (s *Socket) open() (err error) {
	address, err := s.dir.address(s.id + newEnd)
	if err != nil {
		return err
	}
	if s.lock, err = s.dir.claim(s.id); err != nil {
		return err
	}
	s.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err == nil {
		s.listener.SetUnlinkOnClose(false) // remove does, through the directory
		err = s.dir.root.Chmod(s.id+newEnd, 0o600)
		if err == nil {
			err = s.dir.root.Rename(s.id+newEnd, s.id+socketEnd) // nobody sees it before it is closed to others
		}
		if err == nil {
			return nil
		}
		err = errors.Join(err, s.listener.Close())
	}
	return errors.Join(err, s.dir.remove(s.id), s.lock.Close())
}

// PagesPath begins the paths of pages for people on a socket.
const PagesPath = "/console/"

// Pages adds pages for people below [PagesPath]. They bound the time of their requests by themselves. It comes before Serve.
func (s *Socket) Pages(h http.Handler) { s.pages = h }

// handler returns the API with the pages.
func (s *Socket) handler(source Source) http.Handler {
	api := Handler(source, Viewer{All: true, Results: true})
	if s.pages == nil {
		return api
	}
	pages := http.StripPrefix(strings.TrimSuffix(PagesPath, "/"), s.pages)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, PagesPath) {
			api.ServeHTTP(w, r)
			return
		}
		c := http.NewResponseController(w)
		if errors.Join(c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{})) == nil { // or the connection is gone
			pages.ServeHTTP(w, r)
		}
	})
}

// Serve serves the API of a gateway until Close, with the data of its runs: the other end is a program of the same user, who could
// read the memory of this process too. It returns at once.
func (s *Socket) Serve(source Source) {
	s.server = &http.Server{
		Handler: s.handler(source), ReadHeaderTimeout: headerWait, ReadTimeout: requestWait,
		WriteTimeout: answerWait + requestWait, IdleTimeout: idleWait, MaxHeaderBytes: headerBytes,
		ConnState: (&gate{open: map[net.Conn]bool{}}).follow,
	}
	s.served = make(chan struct{})
	go func() {
		defer close(s.served)
		_ = s.server.Serve(s.listener) // until Close
	}()
}

// Close ends the requests in progress and removes the socket.
func (s *Socket) Close() error {
	err := s.dir.remove(s.id)
	if s.server == nil {
		err = errors.Join(err, s.listener.Close())
	} else {
		err = errors.Join(err, s.server.Close())
		<-s.served
	}
	return errors.Join(err, s.lock.Close(), s.dir.Close())
}

// A gate refuses connections of other users, and those beyond a number at once.
type gate struct {
	mu   sync.Mutex
	open map[net.Conn]bool // guarded by mu
}

// follow is an [http.Server.ConnState] hook.
func (g *gate) follow(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if why := g.admit(conn); why != nil {
			refuse(conn, why)
		}
	case http.StateClosed, http.StateHijacked:
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.open, conn)
	}
}

// admit counts a connection, or returns the reason to refuse it.
func (g *gate) admit(conn net.Conn) *Error {
	if err := checkPeer(conn); err != nil {
		return failed(http.StatusForbidden, "", "%v", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.open) >= maxConnections {
		return failed(http.StatusServiceUnavailable, "try again soon", "there are %s already", texts.Count(maxConnections, "connection"))
	}
	g.open[conn] = true
	return nil
}

// refuse answers a new connection before its first request, and closes it.
func refuse(conn net.Conn, why *Error) {
	_ = conn.SetWriteDeadline(time.Now().Add(refuseWait)) // the write reports a failure
	body := texts.JSON(failure{why}) + "\n"
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		why.Status, http.StatusText(why.Status), len(body), body)
	_ = conn.Close()
}

// checkPeer returns an error unless the process at the other end of a connection is of this user.
func checkPeer(conn net.Conn) error {
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return errors.New("that is no Unix socket")
	}
	raw, err := unixConn.SyscallConn()
	if err != nil {
		return err
	}
	user, asked := 0, error(nil)
	if err := raw.Control(func(fd uintptr) { user, asked = peerUser(fd) }); err != nil || asked != nil {
		return errors.Join(err, asked)
	}
	if user != os.Geteuid() {
		return fmt.Errorf("the other end of the socket belongs to user %d, and this is user %d", user, os.Geteuid())
	}
	return nil
}
