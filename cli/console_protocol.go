package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/ui"
	"github.com/mcsh-dev/mcsh/upstream"
)

// Bounds of the messages that are noted while somebody looks at the page.
const (
	maxNoted      = 500
	maxNotedBytes = 2 << 20 // of their texts
	lookTime      = 15 * time.Second
)

// noted are the last messages between the gateway and its servers, while somebody asks for them.
type noted struct {
	pool    *upstream.Pool
	changed func()

	mu    sync.Mutex
	list  []ui.Message
	bytes int
	count int64
	end   *time.Timer // nil: nobody looks
}

// Messages implements [ui.Protocol].
func (n *noted) Messages(context.Context) []ui.Message {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.end == nil {
		n.end = time.AfterFunc(lookTime, n.forget)
		n.pool.Tap(n.note)
	}
	n.end.Reset(lookTime)
	return slices.Clone(n.list)
}

// forget ends it when nobody has looked for a while.
func (n *noted) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pool.Tap(nil)
	n.list, n.bytes, n.end = nil, 0, nil
}

// note notes a message in place of the oldest ones.
func (n *noted) note(m upstream.Message) {
	shown := ui.Message{Server: m.Server, Out: m.Out, At: m.At, Text: m.Text, Size: m.Size}
	shown.Method, shown.ID, shown.Failed = envelope(m.Text)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.end == nil {
		return
	}
	n.count++
	shown.Number = n.count
	n.list, n.bytes = append(n.list, shown), n.bytes+len(m.Text)
	for len(n.list) > maxNoted || n.bytes > maxNotedBytes {
		n.bytes -= len(n.list[0].Text)
		n.list = n.list[1:]
	}
	n.changed()
}

// envelope reads what a message is from its text, which may be cut: its members come in any order.
func envelope(text string) (method, id string, failed bool) {
	dec := json.NewDecoder(strings.NewReader(text))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return "", "", false
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return method, id, failed
		}
		var value json.RawMessage
		err = dec.Decode(&value)
		switch failed = failed || name == "error"; name {
		case "method":
			_ = json.Unmarshal(value, &method) // else it has none
		case "id":
			id = string(value)
		}
		if err != nil {
			return method, id, failed
		}
	}
	return method, id, failed
}
