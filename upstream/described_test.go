package upstream

import (
	"context"
	"encoding/json"
	"testing"
)

// TestDescribedAfterCancel: a tool that was to be described for somebody who has gone is described for the next one.
func TestDescribedAfterCancel(t *testing.T) {
	ctx := t.Context()
	sc := newServerConn(&Server{Name: "x"}, NewPool(Options{}))
	r := newReader(sc)
	tool, err := r.parse(json.RawMessage(`{"name":"a","inputSchema":{"properties":{"b":{"type":"string"}}}}`), false)
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if got := tool.details(gone).Tool.Signature; got != "a(...)" {
		t.Errorf("it is described as %s", got)
	}
	if got := tool.details(ctx).Tool.Signature; got != "a(b?: string)" {
		t.Errorf("then it is described as %s", got)
	}
}
