package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// An SSETransport is the transport of 2024-11-05: one stream with all messages of the server, and an address for ours,
// which the stream names.
type SSETransport struct {
	rpc.Transport
	*client
}

func newSSE(c *client) *SSETransport {
	w := &sse{client: c}
	return &SSETransport{rpc.Transport{Open: w.open, Kind: rpc.Traits{OlderOnly: true}}, c}
}

// Explain explains a failure. A server that refuses to open a stream often has the newer transport.
func (t *SSETransport) Explain(err error) (msg, hint string) {
	msg, hint = t.client.Explain(err)
	if status, ok := errors.AsType[*statusError](err); ok && (status.status == http.StatusBadRequest || status.status == http.StatusMethodNotAllowed) {
		hint = `check the path of url, or leave out "type": "sse" if this is a server of streamable HTTP` + at(t.Where)
	}
	return msg, hint
}

// Abort ends the session by force.
func (t *SSETransport) Abort() {
	t.Transport.Abort()
	t.abort()
}

// sse is the wire of an SSETransport.
type sse struct {
	client  *client
	signing signing
	life    context.Context // of the stream
	cancel  context.CancelFunc
	body    io.ReadCloser
	events  *events
}

// open opens the stream: within ctx, but for as long as the session lives.
func (w *sse) open(ctx context.Context) (rpc.Wire, error) {
	own, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), rawKey{}, true))
	stop := context.AfterFunc(ctx, cancel)
	w.life, w.cancel = own, cancel
	err := w.begin(own)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		if w.body != nil {
			_ = w.body.Close()
		}
		return nil, err
	}
	return w, nil
}

// Prepare implements [rpc.Wire]. The stream counts no memory.
func (w *sse) Prepare(_ *memory.Share, max int) {
	w.client.max.Store(int64(max))
	w.events.max = w.client.messageMax()
}

// Lease implements [rpc.Wire].
func (w *sse) Lease() *memory.Lease { return nil }

// begin reads the address for messages.
func (w *sse) begin(ctx context.Context) error {
	req, err := http.NewRequestWithContext(w.signing.in(ctx), http.MethodGet, w.client.URL, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := w.client.http.Do(req)
	if err != nil {
		return err
	}
	w.body = resp.Body
	if media := mediaOf(resp); media != "text/event-stream" {
		return fmt.Errorf("%w: it is of type %q, not a stream of events", rpc.ErrBroken, texts.Cut(media, 80))
	}
	w.events = newEvents(resp.Body, w.client.messageMax(), w.life.Done())
	first, err := w.events.next()
	if err != nil || first.name != "endpoint" {
		return fmt.Errorf("%w: the stream does not begin with an address", errors.Join(rpc.ErrBroken, err))
	}
	to, err := w.client.target.Parse(strings.TrimSpace(string(first.data)))
	if err != nil {
		return &redirectError{"no address"}
	}
	if origin(to) != origin(w.client.target) {
		return &redirectError{origin(to)}
	}
	w.signing.messages = to.String()
	return nil
}

// Next implements [rpc.Wire].
func (w *sse) Next() ([]byte, error) {
	for {
		ev, err := w.events.next()
		if err != nil {
			return nil, err
		}
		if len(ev.data) > 0 && (ev.name == "" || ev.name == "message") {
			return ev.data, nil
		}
		w.events.limiter.Wait(1, w.life.Done())
	}
}

// Send implements [rpc.Wire].
func (w *sse) Send(ctx context.Context, msg []byte) error {
	ctx, cancel := context.WithCancel(context.WithValue(ctx, rawKey{}, true))
	defer cancel()
	defer context.AfterFunc(w.life, cancel)()
	req, err := http.NewRequestWithContext(w.signing.in(ctx), http.MethodPost, w.signing.messages, bytes.NewReader(msg))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := w.client.http.Do(req)
	if err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxRPCError))
		return resp.Body.Close()
	}
	if status, ok := errors.AsType[*statusError](err); ok && status.status/100 == 4 || notReached(err) {
		return fmt.Errorf("%w: %w", rpc.ErrNotSent, err) // the answer would come on the stream: nobody has begun one
	}
	return err
}

// Close implements [rpc.Wire].
func (w *sse) Close() error {
	w.cancel()
	return w.body.Close()
}
