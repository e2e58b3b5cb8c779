package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	// maxAnswer bounds an answer, in bytes: that of 10,000 servers has about 1 MiB.
	maxAnswer = 16 << 20
	// maxRefusal bounds the message of a refusal and its hint, in bytes.
	maxRefusal = 500
	// settleWait is how long a client waits for a gateway of this machine that starts or ends, and settlePause between two
	// looks at it.
	settleWait  = 5 * time.Second
	settlePause = 20 * time.Millisecond
	// reloadWait is how long a client waits for a reload: longer than a gateway takes.
	reloadWait = answerWait + 10*time.Second
)

// queryWait is how long a client waits for an answer that a gateway has at once. Tests give a loaded machine longer.
var queryWait = 10 * time.Second

// errNoSocket is the error of a call to a gateway that lives and has no socket.
var errNoSocket = failed(0, "start it again", "its socket is gone")

// ErrEnded is the error of a call to a gateway that no longer runs on this machine.
var ErrEnded = errors.New("the gateway has ended")

// A Client calls the API of one gateway. Its methods may be called concurrently.
type Client struct {
	name string // in errors
	base string
	http *http.Client

	token string      // of a gateway of another machine
	ended func() bool // reports whether a gateway of this machine has ended; nil: it is one of another machine
}

// Find returns clients for the gateways of this user that run on this machine with a state directory, by their ids. It
// removes what dead ones have left. With an error it may return some, too.
func Find(state string) (map[string]*Client, error) {
	dir, err := openDirectory(state)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("looking for gateways: %w", err)
	}
	defer dir.Close()
	ids, err := dir.living()
	found := map[string]*Client{}
	for _, id := range ids {
		found[id] = &Client{
			name: "gateway " + id, base: "http://control", ended: func() bool { return ended(state, id) },
			http: client(&http.Transport{
				DisableKeepAlives: true,
				DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, state, id) },
			}),
		}
	}
	if err != nil {
		err = fmt.Errorf("looking for gateways in %s: %w", dir.path, err)
	}
	return found, err
}

// client returns a client that follows no redirection, which could lead a token elsewhere.
func client(transport http.RoundTripper) *http.Client {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: transport, CheckRedirect: stay}
}

// dial connects to the socket of a gateway, and checks whose it is.
func dial(ctx context.Context, state, id string) (net.Conn, error) {
	dir, err := openDirectory(state)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	info, err := dir.root.Lstat(id + socketEnd)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoSocket
	}
	path := filepath.Join(dir.path, id+socketEnd)
	if err == nil && info.Mode().Type() != fs.ModeSocket {
		err = failed(0, "", "%s is no socket", path)
	}
	if err == nil {
		err = private(path, info)
	}
	if err != nil {
		return nil, err
	}
	address, err := dir.address(id + socketEnd)
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", address)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil, errNoSocket
	case err != nil:
		return nil, err
	}
	if err := checkPeer(conn); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), conn.Close())
	}
	return conn, nil
}

// Remote returns a client for the gateway below an address that other machines reach, such as https://mcp.example.com. The
// address has only a host and a path, without a slash at its end.
func Remote(address, token string, transport http.RoundTripper) *Client {
	return &Client{name: address, base: address + Prefix, token: token, http: client(transport)}
}

// Transport sends requests to the gateway: for its pages, at the host "control".
func (c *Client) Transport() http.RoundTripper { return c.http.Transport }

// Prefix begins the paths of the API on a listener that serves other things, too.
const Prefix = "/control"

// Gateway describes the gateway.
func (c *Client) Gateway(ctx context.Context) (g Gateway, err error) {
	return g, c.call(ctx, queryWait, http.MethodGet, "/v1/gateway", nil, &g)
}

// Servers lists the servers of the gateway.
func (c *Client) Servers(ctx context.Context) (list []Server, err error) {
	return list, c.call(ctx, queryWait, http.MethodGet, "/v1/servers", nil, &list)
}

// ShowServers returns what is known of a server, or of all for "".
func (c *Client) ShowServers(ctx context.Context, server string) (list []ServerDetail, err error) {
	return list, c.call(ctx, queryWait, http.MethodPost, "/v1/servers/show", ServerRequest{server}, &list)
}

// RestartServer ends the sessions with a server when their calls in flight have ended, and starts it anew.
func (c *Client) RestartServer(ctx context.Context, server string) error {
	return c.direct(ctx, "restart", server)
}

// DisableServer disables a server.
func (c *Client) DisableServer(ctx context.Context, server string) error {
	return c.direct(ctx, "disable", server)
}

// EnableServer enables a disabled server.
func (c *Client) EnableServer(ctx context.Context, server string) error {
	return c.direct(ctx, "enable", server)
}

// direct makes the gateway do something with a server.
func (c *Client) direct(ctx context.Context, what, server string) error {
	return c.call(ctx, queryWait, http.MethodPost, "/v1/servers/"+what, ServerRequest{server}, &struct{}{})
}

// Live lists the runs in progress.
func (c *Client) Live(ctx context.Context) (list []Run, err error) {
	return list, c.call(ctx, queryWait, http.MethodGet, "/v1/runs", nil, &list)
}

// Runs lists runs, live and finished, the newest first.
func (c *Client) Runs(ctx context.Context, f RunFilter) (list RunList, err error) {
	return list, c.call(ctx, queryWait, http.MethodPost, "/v1/runs/list", f, &list)
}

// Run describes a run.
func (c *Client) Run(ctx context.Context, request string) (d RunDetail, err error) {
	return d, c.call(ctx, queryWait, http.MethodPost, "/v1/runs/show", RunRequest{request}, &d)
}

// Output returns a part of the output of a stage.
func (c *Client) Output(ctx context.Context, r OutputRequest) (part OutputPart, err error) {
	return part, c.call(ctx, queryWait, http.MethodPost, "/v1/runs/output", r, &part)
}

// Wait waits for a change of runs since a cursor, for some time, and returns the next cursor.
func (c *Client) Wait(ctx context.Context, cursor uint64) (uint64, error) {
	next := RunCursor{cursor}
	err := c.call(ctx, runWait+queryWait, http.MethodPost, "/v1/runs/wait", next, &next)
	return next.Cursor, err
}

// Cancel cancels a live run.
func (c *Client) Cancel(ctx context.Context, request string) error {
	return c.call(ctx, queryWait, http.MethodPost, "/v1/runs/cancel", RunRequest{request}, &struct{}{})
}

// Reload makes the gateway read again where its servers are configured.
func (c *Client) Reload(ctx context.Context) (change Change, err error) {
	return change, c.call(ctx, reloadWait, http.MethodPost, "/v1/reload", nil, &change)
}

// call makes a request, whose body may be nil, and decodes its answer. An [Error] is what the gateway says.
func (c *Client) call(ctx context.Context, wait time.Duration, method, path string, body, into any) error {
	const hint = "it may be busy or stopped; end its process if it is stuck"
	silent := failed(0, hint, "%s: it has not answered within %v", c.name, wait)
	ctx, cancel := context.WithTimeoutCause(ctx, wait, silent)
	defer cancel()
	ask := func() error { return c.exchange(ctx, method, path, body, into) }
	err := ask()
	if err != nil && c.ended != nil {
		err = c.settle(ctx, err, ask)
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// settle waits after an error that may come from the start or the end of the gateway, and returns [ErrEnded] if that has
// ended. A gateway without a socket is asked again: it may be starting.
func (c *Client) settle(ctx context.Context, err error, again func() error) error {
	for end := time.Now().Add(settleWait); err != nil && ctx.Err() == nil; time.Sleep(settlePause) {
		_, known := errors.AsType[*Error](err)
		starting := errors.Is(err, errNoSocket)
		switch {
		case known && !starting:
			return err
		case c.ended():
			return fmt.Errorf("%s: %w", c.name, ErrEnded)
		case time.Now().After(end):
			return err
		case starting:
			err = again()
		}
	}
	return err
}

func (c *Client) exchange(ctx context.Context, method, path string, body, into any) error {
	var sent io.Reader
	if body != nil {
		text := texts.JSON(body)
		if len(text) > maxBody { // sent, it would be refused while it is still being written, and the answer lost
			return bodyTooLarge()
		}
		sent = strings.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, sent)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		if outer, ok := errors.AsType[*url.Error](err); ok {
			err = outer.Err // without the address, which the message has in another form
		}
		return fmt.Errorf("%s: %w", c.name, err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: reading the answer: %w", c.name, err)
	case len(data) > maxAnswer:
		return fmt.Errorf("%s: the answer has more than %s", c.name, texts.Bytes(maxAnswer))
	case res.StatusCode != http.StatusOK:
		return c.refused(res, data)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return failed(0, "correct the address", "%s: the answer is not that of a gateway: %v", c.name, err)
	}
	return nil
}

// refused returns the error of an answer.
func (c *Client) refused(res *http.Response, data []byte) error {
	var f failure
	if json.Unmarshal(data, &f) != nil || f.Error == nil || f.Error.Message == "" {
		f.Error = &Error{Message: "it answers " + res.Status + ": " + strings.TrimSpace(string(data))}
	}
	return &Error{res.StatusCode, c.name + ": " + texts.Cut(f.Error.Message, maxRefusal), texts.Cut(f.Error.Hint, maxRefusal)}
}
