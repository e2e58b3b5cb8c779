package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	statelessVersion = "2026-07-28" // from here on there are no sessions, and closing a stream cancels its request

	drainWait     = 250 * time.Millisecond // for a stream to end after its answer, so that its connection is reused
	drainGrace    = 5 * time.Millisecond   // of that, before the next request is made
	maxSlowDrains = 3                      // after so many in a row, a server counts as one that does not end streams
	notifyWait    = 2 * time.Second        // for a notification
	maxResumes    = 5                      // of one answer
	resumeWait    = 500 * time.Millisecond
)

// A call is one request of our own.
type call struct {
	t    *Transport
	r    *rpc.Request
	id   int64
	sent atomic.Bool // a part of it may have arrived

	accepted bool // the server has begun to answer it
}

// Request makes a request and returns its undecoded result.
func (t *Transport) Request(ctx context.Context, r *rpc.Request) (json.RawMessage, *rpc.Failure) {
	c := &call{t: t, r: r, id: t.next.Add(1)}
	t.replies.InFlight.Begin(r)
	result, f := t.request(ctx, c)
	t.replies.InFlight.End(r, c.id, f == nil || !f.Sent || errors.As(f.Err, new(*jsonrpc.Error)))
	return result, f
}

func (t *Transport) request(ctx context.Context, c *call) (json.RawMessage, *rpc.Failure) {
	r := c.r
	t.awaitDrain(ctx)
	if !r.MaySend() {
		<-ctx.Done() // BeforeSend refuses only when ctx ends
		return nil, &rpc.Failure{Err: ctx.Err()}
	}
	t.replies.Role.See(true, func() []byte { return r.Message(c.id) })
	own, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), rawKey{}, true))
	stop := context.AfterFunc(ctx, cancel)
	resp, err := c.post(own)
	if err != nil {
		cancel()
		return nil, c.failed(ctx, err)
	}
	result, ended, err := c.read(own, resp)
	t.replies.Role.See(false, func() []byte { return rpc.AnswerMessage(c.id, result, err) })
	stop() // the caller cancels ctx after the answer, which would close a connection whose stream is still ending
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

// drain reads the rest of a stream after its answer, which is almost nothing, and closes it.
func (t *Transport) drain(body io.ReadCloser, cancel context.CancelFunc) {
	begun := time.Now()
	stop := time.AfterFunc(drainWait, cancel)
	done := make(chan struct{})
	t.draining.Store(&done)
	go func() {
		_, _ = io.Copy(io.Discard, io.LimitReader(body, maxRPCError))
		if t.slowDrains.Add(1); time.Since(begun) < drainGrace {
			t.slowDrains.Store(0)
		}
		stop.Stop()
		_ = body.Close()
		cancel()
		close(done)
	}()
}

// awaitDrain waits a moment for the stream of the last answer, so that the next request finds its connection free. Most
// servers end it at once, but after the answer: a caller that waited for that as well would get its answer late.
func (t *Transport) awaitDrain(ctx context.Context) {
	done := t.draining.Load()
	if done == nil || t.slowDrains.Load() >= maxSlowDrains {
		return
	}
	select {
	case <-*done:
	case <-time.After(drainGrace):
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
	return c.t.http.Do(req)
}

// newRequest makes a request with the headers of the session.
func (t *Transport) newRequest(ctx context.Context, method string, body []byte, version string) (*http.Request, error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.signing.in(ctx), method, t.sdk.Endpoint, reader)
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

// notify sends a message that needs no answer, in the background.
func (t *Transport) notify(msg []byte, version string) {
	t.notifying.Go(func() { t.post(msg, version, notifyWait) })
}

// post sends a message that needs no answer, within a limit.
func (t *Transport) post(msg []byte, version string, limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithValue(t.life, rawKey{}, true), limit)
	defer cancel()
	req, err := t.newRequest(ctx, http.MethodPost, msg, version)
	if err != nil {
		return
	}
	if resp, err := t.http.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxRPCError))
		_ = resp.Body.Close()
	}
}

// read reads the answer from a response. ended says that the response has been read to its end.
func (c *call) read(ctx context.Context, resp *http.Response) (result json.RawMessage, ended bool, err error) {
	c.sent.Store(true)
	c.accepted = true
	switch media := mediaOf(resp); media {
	case "application/json":
		raw, err := readAll(resp, c.t.messageMax(), c.r.Lease)
		if err != nil {
			return nil, true, err
		}
		result, err = c.findAnswer(raw)
		return result, true, err
	case "text/event-stream":
		result, err = c.stream(ctx, resp)
		return result, false, err
	default:
		if media == "" {
			return nil, true, fmt.Errorf("%w: it is empty, or of no type (status %d)", rpc.ErrBroken, resp.StatusCode)
		}
		return nil, true, fmt.Errorf("%w: it is of type %q (status %d)", rpc.ErrBroken, texts.Cut(media, 80), resp.StatusCode)
	}
}

// readAll reads an answer of at most limit bytes.
func readAll(resp *http.Response, limit int64, lease *memory.Lease) ([]byte, error) {
	if resp.ContentLength > limit {
		return nil, &rpc.TooLarge{Size: resp.ContentLength, Max: limit}
	}
	length := limit
	if resp.ContentLength >= 0 {
		length = resp.ContentLength
	}
	all := rpc.NewBuffer(lease)
	defer all.Close()
	if _, err := io.Copy(&all, io.LimitReader(resp.Body, length+1)); err != nil {
		return nil, err
	}
	if int64(all.Len()) > limit {
		return nil, &rpc.TooLarge{Max: limit}
	}
	return all.Bytes()
}

// findAnswer finds the answer in a message, or in a list of messages.
func (c *call) findAnswer(raw []byte) (json.RawMessage, error) {
	e, ok := rpc.Scan(raw)
	if ok && e.IsAnswer() && c.isFor(e.ID) {
		return e.Answer()
	}
	rpc.Elements(raw, func(one []byte) {
		if found, ok := rpc.Scan(one); ok && found.IsAnswer() && c.isFor(found.ID) {
			e = found
		}
	})
	if e.Answers() && (c.isFor(e.ID) || string(e.ID) == "null") {
		return e.Answer()
	}
	return nil, fmt.Errorf("%w: %.100q…", rpc.ErrBroken, raw)
}

// isFor compares an id with the request's. Some servers return numbers as strings.
func (c *call) isFor(id json.RawMessage) bool {
	return strings.Trim(string(id), `"`) == strconv.FormatInt(c.id, 10)
}

// A resumePoint is where a stream is resumed, and when.
type resumePoint struct {
	last  string        // id of the last event
	retry time.Duration // that the server asks for; 0: none
}

// stream reads events up to the answer. A stream that ends early is resumed if the server supports that: some end
// streams on purpose, so that no connection is held while a tool runs, and each part brings an event.
func (c *call) stream(ctx context.Context, resp *http.Response) (json.RawMessage, error) {
	var at resumePoint
	for resumes := 0; ; resumes++ {
		before := at.last
		result, found, err := c.events(ctx, resp.Body, &at)
		if at.last != before {
			resumes = 0
		}
		if found || at.last == "" || ctx.Err() != nil || c.r.Version >= statelessVersion || resumes == maxResumes {
			return result, err
		}
		_ = pausing.For(ctx, cmp.Or(at.retry, resumeWait<<resumes/2))
		req, rerr := c.t.newRequest(ctx, http.MethodGet, nil, c.r.Version)
		if rerr != nil {
			return nil, rerr
		}
		req.Header.Set("Last-Event-ID", at.last)
		again, rerr := c.t.http.Do(req)
		if rerr != nil {
			return nil, fmt.Errorf("%w; taking it up again: %w", err, rerr)
		}
		_ = resp.Body.Close()
		*resp = *again
	}
}

// events reads one stream. found says that it held the answer, or something that cannot be one.
func (c *call) events(ctx context.Context, body io.Reader, at *resumePoint) (result json.RawMessage, found bool, err error) {
	stream := newEvents(body, c.t.messageMax(), ctx.Done())
	stream.lease = c.r.Lease
	limiter := rpc.UnaskedLimiter()
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
			limiter.Wait(1, ctx.Done())
			continue
		}
		e, ok := rpc.Scan(ev.data)
		if ok && e.IsAnswer() && (c.isFor(e.ID) || string(e.ID) == "null") {
			result, err := e.Answer()
			return result, true, err
		}
		if !ok {
			return nil, true, fmt.Errorf("%w: %.100q…", rpc.ErrBroken, ev.data)
		}
		if string(e.Method) == `"notifications/progress"` {
			c.r.ReportProgress(e.Params)
		}
		if e.IsAcknowledgement() {
			c.r.Acknowledge(e.Params)
		}
		c.t.handleUnasked(e, c.r)
		limiter.Wait(rpc.MessageCost(len(ev.data)), ctx.Done())
	}
}

// handleUnasked handles messages of the server that answer no request. They came on the stream of r, which is the request in
// whose middle the server asks; a standing stream is of none.
func (t *Transport) handleUnasked(e rpc.Envelope, r *rpc.Request) {
	t.replies.Role.See(false, func() []byte { return e.Message() })
	version, came := r.Version, r
	if r.Method == standingStream {
		came = nil
	}
	if t.replies.Take(e, came, func(msg []byte) { t.post(msg, version, rpc.AnswerWait) }) {
		return
	}
	if e.Method != nil && e.IsNews() && t.noted != nil {
		t.noted(e.News())
	}
}

// standingStream stands for a method where there is no request.
const standingStream = "the standing stream"

// Listen reads the standing stream of a session of the older protocol, on which the server sends what nobody has asked for, until
// ctx or the stream ends. It calls opened when the server has begun the stream. A stream whose events have ids is resumed without
// a loss.
func (t *Transport) Listen(ctx context.Context, version string, opened func()) *rpc.Failure {
	c := &call{t: t, r: &rpc.Request{Method: standingStream, Version: version}, id: t.next.Add(1)}
	ctx = context.WithValue(ctx, rawKey{}, true)
	var at resumePoint
	conflicts := 0
	for resumes := 0; ; resumes++ {
		before := at.last
		err := c.listen(ctx, &at, opened)
		if at.last != before {
			resumes = 0
		}
		if c.conflict(err) && conflicts < maxConflicts {
			conflicts++
			_ = pausing.For(ctx, conflictWait<<conflicts)
			continue
		}
		if at.last == "" || ctx.Err() != nil || !c.accepted || resumes == maxResumes || !errors.Is(err, io.ErrUnexpectedEOF) {
			return c.failedToListen(ctx, err)
		}
		_ = pausing.For(ctx, cmp.Or(at.retry, resumeWait<<resumes/2))
	}
}

// A server may not know yet that the last stream has ended, and allows one.
const (
	maxConflicts = 8
	conflictWait = 25 * time.Millisecond // doubled each time
)

// conflict reports whether the server refuses a second stream.
func (c *call) conflict(err error) bool {
	status, ok := errors.AsType[*statusError](err)
	return ok && status.status == http.StatusConflict
}

// failedToListen makes a failure. Nothing has been asked of the server: the request is not cancelled, and may be made again.
func (c *call) failedToListen(ctx context.Context, err error) *rpc.Failure {
	if ctx.Err() != nil {
		return &rpc.Failure{Err: ctx.Err()}
	}
	if status, ok := errors.AsType[*statusError](err); ok && status.status == http.StatusMethodNotAllowed {
		return &rpc.Failure{Err: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the server has no stream for notifications (405)"}}
	}
	f := c.failed(ctx, err)
	f.Sent = false
	return f
}

// listen opens the stream and reads it to its end.
func (c *call) listen(ctx context.Context, at *resumePoint, opened func()) error {
	c.accepted = false
	req, err := c.t.newRequest(ctx, http.MethodGet, nil, c.r.Version)
	if err != nil {
		return err
	}
	if at.last != "" {
		req.Header.Set("Last-Event-ID", at.last)
	}
	c.sent.Store(true)
	resp, err := c.t.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if media := mediaOf(resp); media != "text/event-stream" {
		return fmt.Errorf("%w: the standing stream is of type %q", rpc.ErrBroken, media)
	}
	c.accepted = true
	opened()
	if _, _, err = c.events(ctx, resp.Body, at); err == nil {
		err = fmt.Errorf("%w: the standing stream has an answer to no request", rpc.ErrBroken)
	}
	return err
}
