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
	"net/url"
	"sync"
	"time"
)

const (
	healthWait  = 5 * time.Second  // for the proof that ToolHive answers
	requestWait = 20 * time.Second // for an answer of the API
	maxAnswer   = 16 << 20
	nonceHeader = "X-Toolhive-Nonce"
	maxNonce    = 256
)

// errNotToolHive is the error of a listener that has not proved what it is.
var errNotToolHive = errors.New("what answers there has not proved to be ToolHive")

// An api is ToolHive's API at one place. Unless a person has given the place, each connection to it proves itself
// before anything else is sent over it: it shows the nonce of the discovery file, or, at a place that was guessed, the
// nonce of the first connection.
type api struct {
	place  place
	trust  trust
	client *http.Client
	header http.Header // sent over connections that may see it

	mu    sync.Mutex
	nonce string // that connections show; empty before the first. Guarded by mu
	owner owner  // of all connections, guarded by mu
}

// trust says what is believed of a place that was guessed.
type trust struct {
	anyOwner bool // also one of a user that is not us: in a container that is the rule
}

// newAPI returns the API at a place. Nothing is sent yet.
func newAPI(p place, t trust, header http.Header, proxy func(*http.Request) (*url.URL, error)) *api {
	a := &api{place: p, trust: t, nonce: p.nonce, header: header}
	base := &http.Transport{DialContext: a.dial, IdleConnTimeout: 90 * time.Second, ResponseHeaderTimeout: requestWait}
	if p.given && p.socket == "" {
		base.Proxy = proxy
	}
	a.client = &http.Client{
		Transport: base, Timeout: requestWait,
		// Nobody else is asked what this place was asked.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return a
}

// dial connects, and has the other side prove what it is.
func (a *api) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: healthWait}
	if a.place.socket != "" {
		network, address = "unix", a.place.socket
	}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil || a.place.given {
		return conn, err
	}
	if err := a.prove(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// prove asks for the nonce on a connection and looks at who has its other end.
func (a *api) prove(ctx context.Context, conn net.Conn) error {
	deadline := time.Now().Add(healthWait)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	nonce, err := askNonce(conn, a.place)
	if err != nil {
		return err
	}
	if err := a.accept(nonce, ownerOf(conn)); err != nil {
		return err
	}
	if !stop() {
		return ctx.Err()
	}
	return conn.SetDeadline(time.Time{})
}

// askNonce makes the request for the nonce, and nothing that would be a secret.
func askNonce(conn net.Conn, p place) (string, error) {
	req, err := http.NewRequest(http.MethodGet, p.base.JoinPath("health").String(), nil)
	if err != nil {
		return "", err
	}
	if err := req.Write(conn); err != nil {
		return "", fmt.Errorf("asking for its health: %w", err)
	}
	r := bufio.NewReaderSize(io.LimitReader(conn, maxDiscovery), 4096)
	resp, err := http.ReadResponse(r, req)
	if err != nil {
		return "", fmt.Errorf("%w: its answer to /health: %w", errNotToolHive, err)
	}
	_ = resp.Body.Close()
	nonce := resp.Header.Get(nonceHeader)
	switch {
	case resp.StatusCode == http.StatusServiceUnavailable && nonce != "":
		return "", fmt.Errorf("ToolHive says that its container runtime is down: start docker or podman")
	case resp.StatusCode != http.StatusNoContent:
		return "", fmt.Errorf("%w: it answers /health with %d", errNotToolHive, resp.StatusCode)
	case nonce == "" || len(nonce) > maxNonce:
		return "", fmt.Errorf("%w: it shows no nonce", errNotToolHive)
	case r.Buffered() > 0 || resp.Close:
		return "", fmt.Errorf("%w: it does not keep the connection", errNotToolHive)
	}
	return nonce, nil
}

// accept decides about a connection.
func (a *api) accept(nonce string, who owner) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.nonce != "" && subtle.ConstantTimeCompare([]byte(nonce), []byte(a.nonce)) != 1:
		return fmt.Errorf("%w: its nonce is not that of %s", errNotToolHive, a.place.how)
	case a.place.nonce == "" && who == ownerOther && !a.trust.anyOwner:
		return fmt.Errorf("%w: it belongs to another user", errNotToolHive)
	case a.place.nonce == "" && who == ownerUnknown && ownersKnown && !a.trust.anyOwner:
		return fmt.Errorf("%w: it cannot be seen whose it is", errNotToolHive)
	case a.owner == ownerOurs && who != ownerOurs:
		return fmt.Errorf("%w: it has become another user's", errNotToolHive)
	}
	a.nonce, a.owner = nonce, who
	return nil
}

// shows reports whether secrets may be sent to the API: a person has given the place, its nonce was known beforehand,
// or its connections belong to us. All its connections have been proved by then.
func (a *api) shows() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.place.given || a.place.nonce != "" || a.owner == ownerOurs
}

// knock makes a connection, so that it is known who answers before something is asked.
func (a *api) knock(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.place.base.JoinPath("health").String(), nil)
	if err != nil {
		return err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return withoutAddress(err)
	}
	return resp.Body.Close()
}

// withoutAddress takes the address off an error, which stands in our messages already.
func withoutAddress(err error) error {
	if whole, ok := errors.AsType[*url.Error](err); ok {
		return whole.Err
	}
	return err
}

// get asks the API for a JSON document. Errors of the API are text.
func (a *api) get(ctx context.Context, path, query string) ([]byte, error) {
	u := a.place.base.JoinPath("api", "v1beta", path)
	u.RawQuery = query
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if a.shows() {
		maps.Copy(req.Header, a.header)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, withoutAddress(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("its answer is longer than %d MiB", maxAnswer>>20)
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return nil, a.locked(resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("it answers %d: %s", resp.StatusCode, shorten(string(body), 200))
	}
	return body, nil
}

// locked is the error of an API that wants a token.
func (a *api) locked(status int) error {
	if len(a.header) > 0 && !a.shows() {
		return fmt.Errorf("it answers %d: it wants a token, and headers are not sent to an API whose owner is not certain: give its address with --toolhive", status)
	}
	return fmt.Errorf("it answers %d: give it the right token (--toolhive-api-header)", status)
}

// version asks which ToolHive it is.
func (a *api) version(ctx context.Context) (string, error) {
	body, err := a.get(ctx, "version", "")
	if err != nil {
		return "", err
	}
	var answer struct{ Version string }
	if err := json.Unmarshal(body, &answer); err != nil || answer.Version == "" {
		return "", fmt.Errorf("%w: its version cannot be read", errNotToolHive)
	}
	return shorten(answer.Version, 60), nil
}

// workloads asks for all workloads, those that do not run too.
func (a *api) workloads(ctx context.Context) ([]Workload, []string, error) {
	body, err := a.get(ctx, "workloads", "all=true")
	if err != nil {
		return nil, nil, err
	}
	return parseList(body)
}

// seen returns the nonce that was shown.
func (a *api) seen() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.nonce
}

func (a *api) close() { a.client.CloseIdleConnections() }
