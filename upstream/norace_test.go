//go:build !race

package upstream_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestBigResultIsNotCopied: a result of 50 MB costs little more memory than itself.
func TestBigResultIsNotCopied(t *testing.T) {
	if testing.Short() {
		t.Skip("a large result")
	}
	p := childPool(t, "suite", upstream.Options{})
	call(t, p, "s", "nap")
	const size = 50 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "big", Args: fmt.Appendf(nil, `{"bytes":%d}`, size)})
	runtime.ReadMemStats(&after)
	if err != nil || len(res.Data) != size {
		t.Fatalf("got %d bytes, %v", len(res.Data), err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 4*size {
		t.Errorf("%d MB were allocated for a result of %d MB", got>>20, size>>20)
	} else {
		t.Logf("%d MB were allocated for a result of %d MB", got>>20, size>>20)
	}
}
