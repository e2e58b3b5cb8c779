package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	usualPath = "/mcp" // where most servers answer
	seekWait  = 2 * time.Second
	seekBytes = 4 << 10 // of an answer that are looked at
)

// seekPing is what an MCP server answers with JSON-RPC, be it with an error, and what does nothing.
const seekPing = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// Seek asks, after a handshake that failed for there is nothing of that kind at the address, whether there is a server at
// the usual path of the same host; [Transport.Explain] then names it. It makes one request, and none where it would have to
// sign in for that.
func (t *Transport) Seek(ctx context.Context, err error) {
	var status *statusError
	if !errors.As(err, &status) || status.status != http.StatusNotFound && status.status != http.StatusMethodNotAllowed {
		return
	}
	target := *t.trip.target
	if strings.TrimSuffix(target.Path, "/") == usualPath || status.rpc != nil || t.trip.auth != nil {
		return
	}
	target.Path, target.RawPath, target.RawQuery, target.Fragment = usualPath, "", "", ""
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, rawKey{}, true), seekWait)
	defer cancel()
	if t.serves(ctx, &target) {
		found := place(&target) + usualPath
		t.found.Store(&found)
	}
}

// serves reports whether something at an address answers with JSON-RPC, or wants to know who asks.
func (t *Transport) serves(ctx context.Context, address *url.URL) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), strings.NewReader(seekPing))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := t.client.Do(req)
	var status *statusError
	if errors.As(err, &status) {
		return status.rpc != nil || status.NoSignIn()
	} else if err != nil {
		return false
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, seekBytes)) // as much as comes in time
	if _, data, ok := strings.Cut(string(text), "data:"); ok && mediaOf(resp) == "text/event-stream" {
		text = []byte(data)
	}
	answer, _ := rpc.Scan(text)
	return answer.Answers()
}
