package remote

import (
	"bytes"
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
	defaultPath = "/mcp" // of most servers
	findWait    = 2 * time.Second
	findBytes   = 4 << 10 // of an answer that are read
)

// findPing is a request that does nothing, and that every MCP server answers with JSON-RPC.
const findPing = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// FindEndpoint looks for a server at the usual path of the same host, after a handshake that failed because nothing is
// at the address; [Transport.Explain] then names it. It makes one request without a token,
// and none where the server has given one.
func (t *Transport) FindEndpoint(ctx context.Context, err error) {
	var status *statusError
	if !errors.As(err, &status) || status.status != http.StatusNotFound && status.status != http.StatusMethodNotAllowed {
		return
	}
	target := *t.target
	if strings.TrimSuffix(target.Path, "/") == defaultPath || status.rpc != nil || t.signs() {
		return
	}
	target.Path, target.RawPath, target.RawQuery, target.Fragment = defaultPath, "", "", ""
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, rawKey{}, true), findWait)
	defer cancel()
	if t.serves(ctx, &target) {
		found := origin(&target) + defaultPath
		t.found.Store(&found)
	}
}

// serves reports whether an address answers with JSON-RPC, or demands a sign-in.
func (t *Transport) serves(ctx context.Context, address *url.URL) bool {
	req, err := http.NewRequestWithContext((&signing{plain: true}).in(ctx), http.MethodPost, address.String(), strings.NewReader(findPing))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := t.http.Do(req)
	var status *statusError
	if errors.As(err, &status) {
		return status.rpc != nil || NeedsSignIn(err)
	} else if err != nil {
		return false
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, findBytes)) // as much as arrives in time
	if _, data, ok := bytes.Cut(text, []byte("data:")); ok && mediaOf(resp) == "text/event-stream" {
		text = data
	}
	answer, _ := rpc.Scan(text) // it need not have arrived whole
	return answer.Answers()
}
