//go:build !race

package gateway

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/mcsh-dev/mcsh/preview"
)

// TestReplyOfOneWrite: what does not fit is not copied, however it comes, and its characters are counted all the same.
func TestReplyOfOneWrite(t *testing.T) {
	whole := func(r io.Reader, _ preview.Options) (preview.Result, error) {
		n, err := io.Copy(io.Discard, r)
		return preview.Result{Text: fmt.Sprint(n)}, err
	}
	data := bytes.Repeat([]byte("a\xe2\x82\xac\n"), 4<<20)
	for name, parts := range map[string][][]byte{
		"at once":                  {data},
		"behind a short one":       {data[:5], data[5:]},
		"within a character":       {data[:3], data[3:]},
		"within, and byte by byte": {data[:2], data[2:3], data[3:4], data[4:]},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := newReply(1000, whole)
		for _, part := range parts {
			if n, err := r.Write(part); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		r.close()
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
			t.Errorf("%s: %d bytes are allocated for %d that do not fit", name, got, len(data))
		}
		if r.characters != int64(len(data)/5*3) || r.replaced != 0 || r.shape.result.Text != fmt.Sprint(len(data)) {
			t.Errorf("%s: %d characters, %d replaced, the shape has seen %s bytes", name, r.characters, r.replaced, r.shape.result.Text)
		}
	}
}
