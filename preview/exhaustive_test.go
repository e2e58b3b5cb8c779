//go:build !race

package preview_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/preview"
)

// sized reads at most n bytes at a time.
type sized struct {
	r io.Reader
	n int
}

func (s sized) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), s.n)]) }

func TestReadSizesDoNotMatter(t *testing.T) {
	for name, data := range samples() {
		data = strings.Repeat(data, 1+200_000/len(data)) // beyond the scanner's buffer
		opts := preview.Options{Chars: 2000}
		want := check(t, []byte(data), opts)
		for _, n := range []int{1, 7, 64 << 10} {
			got, err := preview.Preview(context.Background(), sized{strings.NewReader(data), n}, opts)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, reads of %d bytes: result differs\n%s", name, n, diff)
			}
		}
	}
}

// TestProseHidesNoGap shows numbered lines, and wants every line that is not shown to be counted where it is missing.
func TestProseHidesNoGap(t *testing.T) {
	for _, lines := range []int{30, 210, 249, 250, 251, 400} {
		rng := rand.New(rand.NewPCG(7, 7))
		var b strings.Builder
		for i := range lines {
			fmt.Fprintf(&b, "%d", i+1)
			for range i%9 + 1 {
				fmt.Fprintf(&b, " %s", pick(rng, oddWords...))
			}
			b.WriteByte('\n')
		}
		for chars := 200; chars < b.Len()+300; chars += 97 {
			res := check(t, []byte(b.String()), preview.Options{Chars: chars, Window: true})
			next := 1
			for i, line := range strings.Split(strings.TrimSpace(res.Text), "\n") {
				var n int
				switch {
				case i < 2 || strings.HasPrefix(line, "==="):
				case strings.HasPrefix(line, "… "):
					_, err := fmt.Sscanf(line, "… %d", &n)
					if err != nil {
						t.Fatal(err)
					}
					next += n
				default:
					if _, err := fmt.Sscan(line, &n); err != nil || n != next {
						t.Fatalf("%d lines at %d: line %d comes where %d should (%v)\n%s", lines, chars, n, next, err, res.Text)
					}
					next++
				}
			}
			if next != lines+1 {
				t.Fatalf("%d lines at %d: %d are told of\n%s", lines, chars, next-1, res.Text)
			}
		}
	}
}

var oddWords = strings.Fields("alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau phi chi psi omega")
