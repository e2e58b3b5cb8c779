package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestCancelledCheckOfArguments: who stops waiting for a check stops it, and others check arguments of the same tool
// meanwhile.
func TestCancelledCheckOfArguments(t *testing.T) {
	pool := mcptest.Pool(t, map[string]*mcptest.Upstream{"x": mcptest.New(mcptest.Tool{
		Name: "t", ReadOnly: true, Text: "done", Schema: `{"type":"object","properties":{"n":{"type":"integer"}}}`,
	})})
	info, err := pool.Tool(t.Context(), "x", "t")
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("nobody waits"))
	if wrong, note := info.Input.Check(gone, json.RawMessage(`{"n":"1"}`), false); wrong != nil || !strings.Contains(note, "nobody waits") {
		t.Errorf("the cancelled check says %q, %q", wrong, note)
	}
	if _, err := pool.CallTool(t.Context(), stages.Call{Server: "x", Name: "t", Args: json.RawMessage(`{"n":1}`)}); err != nil {
		t.Error(err)
	}
	if wrong, _ := info.Input.Check(t.Context(), json.RawMessage(`{"n":"1"}`), false); len(wrong) != 1 {
		t.Errorf("the next check says %q", wrong)
	}
}
