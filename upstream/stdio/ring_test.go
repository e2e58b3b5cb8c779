package stdio

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

func TestRing(t *testing.T) {
	r := ring{limiter: rpc.Limiter{PerSecond: 1 << 30, Burst: 1 << 30}}
	for i := range 20_000 {
		fmt.Fprintf(&r, "\x1b[31mline %d\x1b[0m\r\n\n", i)
	}
	if len(r.String()) != ringSize {
		t.Errorf("keeps %d bytes, want %d", len(r.String()), ringSize)
	}
	want := "line 19992\nline 19993\nline 19994\nline 19995\nline 19996\nline 19997\nline 19998\nline 19999"
	if got := r.tail(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_, _ = r.Write([]byte(strings.Repeat("é", ringSize)))
	if got := r.tail(); !strings.HasPrefix(got, "…é") || len(got) > tailBytes+8 {
		t.Errorf("got %.20q, %d bytes", got, len(got))
	}
}
