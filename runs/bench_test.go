package runs_test

import (
	"testing"

	"github.com/mcsh-dev/mcsh/runs"
)

// BenchmarkKeep measures what keeping costs a stream: outputs of 64 MiB, written as pipes write.
func BenchmarkKeep(b *testing.B) {
	for _, tt := range []struct {
		name string
		n    int
	}{{"small", 100}, {"in memory", 1 << 20}, {"on disk", 64 << 20}, {"too long", 65 << 20}} {
		b.Run(tt.name, func(b *testing.B) {
			s := runs.New(runs.Options{Dir: b.TempDir(), Total: 256 << 20})
			defer s.Close()
			c := s.Of("me")
			p := make([]byte, tt.n)
			b.SetBytes(int64(tt.n))
			for b.Loop() {
				keep(c, "1", p, 32<<10)
			}
		})
	}
}
