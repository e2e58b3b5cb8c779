package cli

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestNoted: messages are noted only while somebody looks, and within their bounds.
func TestNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &noted{pool: mcptest.Pool(t, nil), changed: func() {}}
		m := upstream.Message{Server: "s", Text: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":"` + strings.Repeat("x", 5000)}
		n.note(m)
		if got := n.Messages(t.Context()); len(got) != 0 {
			t.Errorf("%d messages were noted before anybody looked", len(got))
		}
		time.Sleep(lookTime - 1)
		for range 3 * maxNoted {
			n.note(m)
		}
		got, bytes := n.Messages(t.Context()), 0
		for _, one := range got {
			bytes += len(one.Text)
		}
		if len(got) == 0 || len(got) > maxNoted || bytes > maxNotedBytes {
			t.Errorf("%d messages of %d bytes are noted", len(got), bytes)
		}
		if last := got[len(got)-1]; last.Method != "tools/call" || last.ID != "7" || last.Number != 3*maxNoted {
			t.Errorf("the last one is %s %s, the %d.", last.Method, last.ID, last.Number)
		}
		time.Sleep(lookTime + 1)
		if n.note(m); len(n.list) != 0 || n.bytes != 0 {
			t.Error("messages are kept though nobody looks any more")
		}
	})
}

// TestEnvelope: what a message is, from its beginning.
func TestEnvelope(t *testing.T) {
	for text, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`: "ping 1 false", `{"id":"a","error":{"code":1}}`: ` "a" true`, `{"method":"x","params":{"cut`: "x  false",
		`not JSON`: "  false", `[1]`: "  false", `{"method":7}`: "  false",
	} {
		method, id, failed := envelope(text)
		if got := method + " " + id + " " + map[bool]string{true: "true", false: "false"}[failed]; got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}
