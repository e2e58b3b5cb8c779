package docker_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
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

// BenchmarkStream runs four commands of one chain on a long text.
func BenchmarkStream(b *testing.B) {
	p := newPool(b, options())
	s := open(b, p, "a")
	var chain []stages.Command
	for _, argv := range [][]string{{"grep", "-v", "debug"}, {"cut", "-d,", "-f1-4"}, {"sed", "s/user/u/"}, {"wc", "-l"}} {
		chain = append(chain, stages.Command{Name: argv[0], Args: argv[1:], Timeout: time.Hour})
	}
	f, err := s.Prepare(chain, nil)
	if err != nil {
		b.Fatal(err)
	}
	const size = 256 << 20
	line := []byte("1234567,user 1234567,info,some words of a longer text,and more of it\n")
	block := bytes.Repeat(line, 1000)
	b.SetBytes(size)
	for b.Loop() {
		var out bytes.Buffer
		in := io.LimitReader(reader(func(p []byte) (int, error) { return copy(p, block), nil }), size)
		if err := f(b.Context(), in, &out); err != nil {
			b.Fatal(err)
		}
	}
}
