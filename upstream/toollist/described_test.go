package toollist

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/mcsh-dev/mcsh/schemas"
)

// TestDescribedAfterCancel: a tool that was to be described for somebody who has gone is described for the next one.
func TestDescribedAfterCancel(t *testing.T) {
	ctx := t.Context()
	cache := schemas.NewCache(1<<20, nil, schemas.Limits{})
	r := &Reader{Server: "x", Cache: cache, Allowance: cache.Limits().Allowance()}
	tool, err := r.Parse(json.RawMessage(`{"name":"a","inputSchema":{"properties":{"b":{"type":"string"}}}}`), false)
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if got := tool.Details(gone).Tool.Signature; got != "a(...)" {
		t.Errorf("it is described as %s", got)
	}
	if got := tool.Details(ctx).Tool.Signature; got != "a(b?: string)" {
		t.Errorf("then it is described as %s", got)
	}
}
