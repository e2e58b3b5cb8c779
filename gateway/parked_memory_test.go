//go:build !race

package gateway_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/memory"
)

// liveHeap is the memory in use after a collection.
func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // pools keep their contents for one
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestParkedMemory: a call that waits for its client keeps only a small part of its message, and that counts.
func TestParkedMemory(t *testing.T) {
	const calls, large = 8, 4 << 20
	token := strings.Repeat("t", 1<<20)
	for _, kind := range []string{"application/json", "application/json; charset=utf-8"} { // the SDK reads the second one
		t.Run(kind, func(t *testing.T) {
			share := memory.New(256<<20).Share("runs", 256<<20)
			g := curiousGateway(t, gateway.Options{Memory: share, MaxOutput: 1000})
			ann := newStateless(g, "ann")
			ann.kind = kind
			before := liveHeap()
			for range calls {
				a := ann.callMeta(t, asks(nameForm), `"progressToken":"`+token+`","x":["`+strings.Repeat("x", large)+`"],`, "")
				if a.Type != "input_required" {
					t.Fatalf("got %+v", a)
				}
			}
			kept, counted := liveHeap()-before, share.Used()
			if counted < calls*int64(len(token)) {
				t.Errorf("%d bytes count, less than the tokens have", counted)
			}
			if kept > counted+calls*large/2 {
				t.Errorf("%d bytes are kept, and %d count", kept, counted)
			}
			runtime.KeepAlive(g)
		})
	}
}
