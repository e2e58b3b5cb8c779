//go:build linux

package local_test

import (
	"io"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/stages"
)

// BenchmarkStart measures what starting a chain costs: 1 KB through one command.
func BenchmarkStart(b *testing.B) {
	for _, c := range []stages.Command{{Name: "cut", Args: []string{"-c1"}}, {Name: "awk", Args: []string{"{print}"}}, {Name: "jq", Args: []string{"-R", "."}}} {
		b.Run(c.Name, func(b *testing.B) {
			p := newPool(b, "")
			s, err := p.Open(b.Context(), "")
			if err != nil {
				b.Fatal(err)
			}
			f, err := s.Prepare([]stages.Command{c}, nil)
			if err != nil {
				b.Fatal(err)
			}
			in := strings.Repeat("abcdefg\n", 128)
			for b.Loop() {
				if err := f(b.Context(), strings.NewReader(in), io.Discard); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRun measures what a run costs that has one command: a worker of its own, which was started before, and the
// start of the next one.
func BenchmarkRun(b *testing.B) {
	for _, c := range []stages.Command{{Name: "cut", Args: []string{"-c1"}}, {Name: "jq", Args: []string{"-R", "."}}} {
		b.Run(c.Name, func(b *testing.B) {
			p := newPool(b, "")
			in := strings.Repeat("abcdefg\n", 128)
			for b.Loop() {
				s, err := p.Open(b.Context(), "")
				if err != nil {
					b.Fatal(err)
				}
				f, err := s.Prepare([]stages.Command{c}, nil)
				if err != nil {
					b.Fatal(err)
				}
				if err := f(b.Context(), strings.NewReader(in), io.Discard); err != nil {
					b.Fatal(err)
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
