package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	statelessVersion = "2026-07-28" // from here on there are no sessions, and closing a stream cancels its request

	drainWait  = 250 * time.Millisecond // for a stream whose answer was read to end, so that its connection is used again
	lingerWait = 5 * time.Millisecond   // of that, before the next request is made
	lingers    = 3                      // streams in a row that end later are of a server that does not end them
	sideWait   = 2 * time.Second        // for what is told the server beside
	maxResumes = 5                      // of one answer whose stream broke
	resumeWait = 500 * time.Millisecond
)

// A call is one request of our own under way.
type call struct {
	t    *Transport
	r    *rpc.Request
	id   int64
	sent atomic.Bool // something of it may have arrived
}

// Request makes a request and returns its undecoded result.
func (t *Transport) Request(ctx context.Context, r *rpc.Request) (json.RawMessage, *rpc.Failure) {
	c := &call{t: t, r: r, id: t.next.Add(1)}
	t.drained(ctx)
	if !r.Leave() {
		<-ctx.Done() // it was its end that kept the request from leaving
		return nil, &rpc.Failure{Err: ctx.Err()}
	}
	own, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), rawKey{}, true))
	stop := context.AfterFunc(ctx, cancel)
	resp, err := c.post(own)
	if err != nil {
		cancel()
		return nil, c.failed(ctx, err)
	}
	result, ended, err := c.read(own, resp)
	stop() // a caller who has the answer ends ctx, which would close the connection of a stream that still ends
	if err == nil && !ended {
		t.drain(resp.Body, cancel)
		return result, nil
	}
	_ = resp.Body.Close()
	cancel()
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	return result, nil
}

// drain reads what is behind an answer, which is next to nothing, and closes the stream.
func (t *Transport) drain(body io.ReadCloser, cancel context.CancelFunc) {
	begun := time.Now()
	stop := time.AfterFunc(drainWait, cancel)
	done := make(chan struct{})
	t.draining.Store(&done)
	go func() {
		_, _ = io.Copy(io.Discard, io.LimitReader(body, maxRPCError))
		if t.late.Add(1); time.Since(begun) < lingerWait {
			t.late.Store(0)
		}
		stop.Stop()
		_ = body.Close()
		cancel()
		close(done)
	}()
}

// drained waits a moment for the stream of the last answer, so that the next request finds its connection free. Most
// servers end it at once, but behind the answer: whoever waited for that as well would have the answer late.
func (t *Transport) drained(ctx context.Context) {
	done := t.draining.Load()
	if done == nil || t.late.Load() >= lingers {
		return
	}
	select {
	case <-*done:
		return
	default:
	}
	timer := time.NewTimer(lingerWait)
	defer timer.Stop()
	select {
	case <-*done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// post sends the request.
func (c *call) post(ctx context.Context) (*http.Response, error) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { c.sent.Store(true) }})
	req, err := c.t.newRequest(ctx, http.MethodPost, c.r.Message(c.id), c.r.Version)
	if err != nil {
		return nil, err
	}
	if c.r.Version >= statelessVersion {
		req.Header.Set("Mcp-Method", c.r.Method)
		if c.r.Name != "" {
			req.Header.Set("Mcp-Name", c.r.Name)
		}
	}
	for name, value := range c.r.Headers {
		req.Header.Set(name, value)
	}
	return c.t.client.Do(req)
}

// newRequest makes a request with the headers of the session.
func (t *Transport) newRequest(ctx context.Context, method string, body []byte, version string) (*http.Request, error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, t.sdk.Endpoint, reader)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
	} else {
		req.Header.Set("Accept", "text/event-stream")
	}
	req.Header.Set("Mcp-Protocol-Version", version)
	if id := t.conn.SessionID(); id != "" {
		req.Header.Set("Mcp-Session-Id", id)
	}
	return req, nil
}

// failed says what became of a request without a result.
func (c *call) failed(ctx context.Context, err error) *rpc.Failure {
	f := &rpc.Failure{Err: err, Sent: c.sent.Load()}
	var status *statusError
	switch {
	case ctx.Err() != nil:
		f.Err = ctx.Err()
		if f.Sent && c.r.Version < statelessVersion {
			c.t.tell(rpc.Cancelled(c.id), c.r.Version)
		}
	case errors.As(err, &status):
		c.refused(ctx, f, status)
	case unreached(err):
		f.Sent = false
		f.Lost = isDial(err)
	default:
		f.Trouble = !errors.Is(err, rpc.ErrTooLarge) && !errors.Is(err, rpc.ErrBroken) && !isAnswer(err)
	}
	return f
}

// unreached reports whether a request was not sent to the server at all. One that was answered with a redirect was: 303
// means that it is done, and where to see it.
func unreached(err error) bool {
	var signIn *signInError
	return errors.As(err, &signIn) || isDial(err)
}

// isAnswer reports whether the server has answered with an error of its own.
func isAnswer(err error) bool {
	var wire *jsonrpc.Error
	return errors.As(err, &wire)
}

// isDial reports whether there was no connection to send a request on.
func isDial(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial"
}

// refused judges an answer other than 2xx. 400 and 404 are what servers say to a session that they do not know, and what
// tools say for reasons of their own: whether the session is gone, the server is asked.
func (c *call) refused(ctx context.Context, f *rpc.Failure, status *statusError) {
	f.RetryAfter = status.wait
	f.Trouble = status.status >= 500 && status.rpc == nil
	if f.Sent = !status.unseen(); !f.Sent {
		return
	}
	missing := status.status == http.StatusNotFound || status.status == http.StatusBadRequest
	if missing && !status.answers(c.id) && c.t.conn.SessionID() != "" && c.r.Version < statelessVersion && c.t.gone(ctx, c.r.Version) {
		f.Sent, f.Lost = false, true
		return
	}
	status.known = status.status/100 == 4 && status.status != http.StatusForbidden
	if status.rpc != nil && status.known {
		f.Err = status.rpc
	}
}

// gone reports whether the server does not know the session any more: it refuses a ping, too.
func (t *Transport) gone(ctx context.Context, version string) bool {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, rawKey{}, true), sideWait)
	defer cancel()
	c := &call{t: t, r: &rpc.Request{Method: "ping", Version: version}, id: t.next.Add(1)}
	resp, err := c.post(ctx)
	if err == nil {
		_ = resp.Body.Close()
	}
	var status *statusError
	return errors.As(err, &status) && (status.status == http.StatusNotFound || status.status == http.StatusBadRequest) && !status.answers(c.id)
}

// tell sends what needs no answer, behind the caller's return.
func (t *Transport) tell(msg []byte, version string) {
	t.side.Go(func() { t.post(msg, version) })
}

// post sends what needs no answer.
func (t *Transport) post(msg []byte, version string) {
	ctx, cancel := context.WithTimeout(context.WithValue(t.life, rawKey{}, true), sideWait)
	defer cancel()
	req, err := t.newRequest(ctx, http.MethodPost, msg, version)
	if err != nil {
		return
	}
	if resp, err := t.client.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxRPCError))
		_ = resp.Body.Close()
	}
}

// read takes the answer out of a response. ended says that the response has been read to its end.
func (c *call) read(ctx context.Context, resp *http.Response) (result json.RawMessage, ended bool, err error) {
	c.sent.Store(true)
	switch media := mediaOf(resp); media {
	case "application/json":
		raw, err := readAll(resp, c.t.trip.max)
		if err != nil {
			return nil, true, err
		}
		result, err = c.only(raw)
		return result, true, err
	case "text/event-stream":
		result, err = c.stream(ctx, resp)
		return result, false, err
	default:
		if media == "" {
			return nil, true, fmt.Errorf("%w: it is empty, or of no type (status %d)", rpc.ErrBroken, resp.StatusCode)
		}
		return nil, true, fmt.Errorf("%w: it is of type %q (status %d)", rpc.ErrBroken, rpc.Shorten(media, 80), resp.StatusCode)
	}
}

// readAll reads an answer of at most limit bytes, into one buffer where its length is known.
func readAll(resp *http.Response, limit int64) ([]byte, error) {
	if resp.ContentLength > limit {
		return nil, fmt.Errorf("%w (%d bytes)", rpc.ErrTooLarge, resp.ContentLength)
	}
	buf := make([]byte, 0, max(resp.ContentLength, 511)+1)
	for {
		n, err := resp.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			return nil, fmt.Errorf("%w (%d bytes)", rpc.ErrTooLarge, limit)
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, err
		case len(buf) == cap(buf):
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
	}
}

// only finds the answer in a message, or in a list of them.
func (c *call) only(raw []byte) (json.RawMessage, error) {
	e, ok := rpc.Scan(raw)
	if ok && e.IsAnswer() && c.mine(e.ID) {
		return e.Answer()
	}
	rpc.Elements(raw, func(one []byte) {
		if found, ok := rpc.Scan(one); ok && found.IsAnswer() && c.mine(found.ID) {
			e = found
		}
	})
	if e.Answers() && (c.mine(e.ID) || string(e.ID) == "null") {
		return e.Answer()
	}
	return nil, fmt.Errorf("%w: %.100q…", rpc.ErrBroken, raw)
}

// mine compares an id with the request's. Some servers give numbers back as text.
func (c *call) mine(id json.RawMessage) bool {
	return strings.Trim(string(id), `"`) == strconv.FormatInt(c.id, 10)
}

// A mark is where a stream is taken up again, and when.
type mark struct {
	last  string        // id of the last event
	retry time.Duration // as the server wants it; 0: it has not said
}

// stream reads events up to the answer. A stream that ends before it is taken up again where the server can do that: some
// end them on purpose, so that no connection is held while a tool runs, and each part brings an event.
func (c *call) stream(ctx context.Context, resp *http.Response) (json.RawMessage, error) {
	var at mark
	for resumes := 0; ; resumes++ {
		before := at.last
		result, found, err := c.events(resp.Body, &at)
		if at.last != before {
			resumes = 0
		}
		if found || at.last == "" || ctx.Err() != nil || c.r.Version >= statelessVersion || resumes == maxResumes {
			return result, err
		}
		pause(ctx, cmp.Or(at.retry, resumeWait<<resumes/2))
		req, rerr := c.t.newRequest(ctx, http.MethodGet, nil, c.r.Version)
		if rerr != nil {
			return nil, rerr
		}
		req.Header.Set("Last-Event-ID", at.last)
		again, rerr := c.t.client.Do(req)
		if rerr != nil {
			return nil, fmt.Errorf("%w; taking it up again: %w", err, rerr)
		}
		_ = resp.Body.Close()
		*resp = *again
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// events reads one stream. found says that it held the answer, or something that cannot be one.
func (c *call) events(body io.Reader, at *mark) (result json.RawMessage, found bool, err error) {
	stream := newEvents(body, c.t.trip.max)
	pace := rpc.Pace{PerSecond: unaskedRate, Burst: unaskedBurst}
	for {
		ev, err := stream.next()
		at.retry = cmp.Or(stream.retry, at.retry)
		var long *rpc.Overlong
		switch {
		case errors.As(err, &long):
			if e, _ := rpc.Scan(long.Head); e.Method != nil {
				continue
			}
			return nil, true, err
		case err == io.EOF:
			return nil, false, io.ErrUnexpectedEOF
		case err != nil:
			return nil, errors.Is(err, rpc.ErrTooLarge), err
		}
		if ev.id != "" {
			at.last = ev.id
		}
		if len(ev.data) == 0 || ev.name != "" && ev.name != "message" {
			continue
		}
		e, ok := rpc.Scan(ev.data)
		if ok && e.IsAnswer() && (c.mine(e.ID) || string(e.ID) == "null") {
			result, err := e.Answer()
			return result, true, err
		}
		if !ok {
			return nil, true, fmt.Errorf("%w: %.100q…", rpc.ErrBroken, ev.data)
		}
		c.t.hear(e, c.r.Version)
		pace.Wait(1, nil)
	}
}

// How fast a server may send what nobody asked for within one answer, before it is read slowly.
const (
	unaskedRate  = 1000
	unaskedBurst = 5000
)

// hear takes what a server says beside an answer: word of a change, or a request of its own.
func (t *Transport) hear(e rpc.Envelope, version string) {
	switch {
	case e.Method == nil:
	case e.ID != nil:
		t.replies.Give(e, func(msg []byte) { t.post(msg, version) })
	case string(e.Method) == `"notifications/tools/list_changed"` && t.changed != nil:
		t.changed()
	}
}
