package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

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
			pause(ctx, conflictWait<<conflicts)
			continue
		}
		if at.last == "" || ctx.Err() != nil || !c.accepted || resumes == maxResumes || !errors.Is(err, io.ErrUnexpectedEOF) {
			return c.failedToListen(ctx, err)
		}
		pause(ctx, cmp.Or(at.retry, resumeWait<<resumes/2))
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

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// failedToListen makes a failure. Nothing has been asked of the server: the request is not cancelled, and may be made again.
func (c *call) failedToListen(ctx context.Context, err error) *rpc.Failure {
	if ctx.Err() != nil {
		return &rpc.Failure{Err: ctx.Err()}
	}
	var status *statusError
	if errors.As(err, &status) && status.status == http.StatusMethodNotAllowed {
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
