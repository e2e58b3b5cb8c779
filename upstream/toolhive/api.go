package toolhive

import (
	"bufio"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"time"

	"github.com/mcsh-dev/mcsh/internal/sockets"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	proofWait   = 5 * time.Second  // for a connection and its proof
	requestWait = 20 * time.Second // for an answer of the API
	maxProof    = 64 << 10
	maxAnswer   = 16 << 20
	nonceHeader = "X-Toolhive-Nonce"
)

// errNotToolHive is the error of a listener that has not proved what it is.
var errNotToolHive = errors.New("it has not proved to be ToolHive")

// An api is ToolHive's API at an address.
type api struct {
	address address
	client  *http.Client
	header  http.Header // sent if the address is certain
	version string
}

// open connects to the API at an address and asks for its version.
func (o *Options) open(ctx context.Context, a address) (*api, error) {
	if a.err != nil {
		return nil, a.err
	}
	base := &http.Transport{DialContext: a.dial, IdleConnTimeout: 90 * time.Second, ResponseHeaderTimeout: requestWait}
	if a.given && a.socket == "" {
		base.Proxy = o.Proxy
	}
	api := &api{address: a, header: o.APIHeaders, client: &http.Client{
		Transport: base, Timeout: requestWait,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	body, err := api.get(ctx, "version", "")
	if err == nil {
		var answer struct{ Version string }
		if json.Unmarshal(body, &answer) != nil || answer.Version == "" {
			err = fmt.Errorf("%w: its version cannot be read", errNotToolHive)
		}
		api.version = shorten(answer.Version, 60)
	}
	if err != nil {
		api.close()
		return nil, err
	}
	return api, nil
}

func (a *api) close() { a.client.CloseIdleConnections() }

// dial connects, and has the other side prove what it is.
func (a address) dial(ctx context.Context, network, host string) (net.Conn, error) {
	d := net.Dialer{Timeout: proofWait}
	if a.socket != "" {
		network, host = "unix", a.socket
	}
	conn, err := d.DialContext(ctx, network, host)
	if err != nil || a.given {
		return conn, err
	}
	if err := a.prove(conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// prove asks over a new connection for the nonce, which is not secret, and checks the answer and the owner.
func (a address) prove(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(proofWait)); err != nil {
		return err
	}
	nonce, err := a.askNonce(conn)
	if err != nil {
		return err
	}
	uid, known := ownerOf(conn)
	if err := a.accept(nonce, uid, known); err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}

func (a address) askNonce(conn net.Conn) (string, error) {
	req, err := http.NewRequest(http.MethodGet, a.base.JoinPath("health").String(), nil)
	if err != nil {
		return "", err
	}
	if err := req.Write(conn); err != nil {
		return "", fmt.Errorf("asking for its health: %w", err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, maxProof)), req)
	if err != nil {
		return "", fmt.Errorf("%w: its answer to /health: %w", errNotToolHive, err)
	}
	_ = resp.Body.Close()
	nonce := resp.Header.Get(nonceHeader)
	switch {
	case resp.StatusCode == http.StatusServiceUnavailable && nonce != "":
		return "", errors.New("ToolHive says that its container runtime is down: start docker or podman")
	case resp.StatusCode != http.StatusNoContent:
		return "", fmt.Errorf("%w: it answers /health with %d", errNotToolHive, resp.StatusCode)
	case nonce == "":
		return "", fmt.Errorf("%w: it shows no nonce", errNotToolHive)
	}
	return nonce, nil
}

// accept decides about a connection that shows a nonce and belongs to a user, if that is known.
func (a address) accept(nonce string, uid int, known bool) error {
	switch {
	case a.nonce != "" && subtle.ConstantTimeCompare([]byte(nonce), []byte(a.nonce)) != 1:
		return fmt.Errorf("%w: its nonce is not that of %s", errNotToolHive, a.from)
	case a.nonce != "" || a.anyOwner || !ownersKnown || known && isOurs(uid):
		return nil
	case known:
		return fmt.Errorf("%w: it belongs to another user", errNotToolHive)
	}
	return fmt.Errorf("%w: its owner cannot be seen", errNotToolHive)
}

// get asks the API for a JSON document. Errors of the API are text.
func (a *api) get(ctx context.Context, path, query string) ([]byte, error) {
	u := a.address.base.JoinPath("api", "v1beta", path)
	u.RawQuery = query
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if a.address.certain() {
		maps.Copy(req.Header, a.header)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := a.client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // our messages name the address already
		}
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch status := resp.StatusCode; {
	case err != nil:
		return nil, err
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("its answer is longer than %s", texts.Bytes(maxAnswer))
	case status == http.StatusOK:
		return body, nil
	case status != http.StatusUnauthorized && status != http.StatusForbidden:
		return nil, fmt.Errorf("it answers %d: %s", status, shorten(string(body), 200))
	case len(a.header) > 0 && !a.address.certain():
		return nil, fmt.Errorf("it answers %d: it wants a token, and headers are not sent to an API whose owner is not certain: give its address with --toolhive", status)
	default:
		return nil, fmt.Errorf("it answers %d: give it the right token (--toolhive-api-header)", status)
	}
}

// workloads asks for all workloads, also those that do not run.
func (a *api) workloads(ctx context.Context) (list []Workload, flaws []string, err error) {
	body, err := a.get(ctx, "workloads", "all=true")
	if err != nil {
		return nil, nil, err
	}
	return parseList(body)
}

// ownersKnown says that this system shows the owner of a connection.
const ownersKnown = runtime.GOOS == "linux"

// isOurs reports whether a user is the one that we run as, or root.
func isOurs(uid int) bool { return uid == 0 || uid == os.Geteuid() }

// ownerOf finds the user who has the other end of a connection within this machine. The other side must have answered
// on it: until then the socket counts as root's.
func ownerOf(conn net.Conn) (uid int, ok bool) {
	return socketOwner(sockets.TCP(), addrPort(conn.RemoteAddr()), addrPort(conn.LocalAddr()))
}

// socketOwner finds the user of the socket at far that is connected with near.
func socketOwner(list []sockets.Socket, far, near netip.AddrPort) (uid int, ok bool) {
	for _, s := range list {
		if s.State == sockets.Connected && s.Local == far && s.Remote == near {
			return s.User, true
		}
	}
	return 0, false
}

func addrPort(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
