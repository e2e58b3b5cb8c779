package docker_test

import (
	"bytes"
	"strings"
	"testing"
)

// BenchmarkRun opens a session in the container of its caller, runs a command and closes it.
func BenchmarkRun(b *testing.B) {
	p := newPool(b, options())
	works(b, p, "a")
	for b.Loop() {
		s, err := p.Open(b.Context(), "a")
		if err != nil {
			b.Fatal(err)
		}
		var out bytes.Buffer
		if err := filter(b, s, "tr", "a", "b")(b.Context(), strings.NewReader("a"), &out); err != nil || out.String() != "b" {
			b.Fatalf("got %q, %v", out.String(), err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
