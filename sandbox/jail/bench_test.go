//go:build linux

package jail

import (
	"os"
	"slices"
	"testing"
	"time"
)

// BenchmarkCellStart measures a start, and says the median of its time.
func BenchmarkCellStart(b *testing.B) {
	c, err := NewCell(Spec{
		Path: "/usr/bin/true", Read: []string{"/usr/lib", "/lib", "/lib64", "/usr/lib64", "/etc/ld.so.cache"},
		Run: []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"},
	})
	if err != nil {
		b.Skip(err)
	}
	defer c.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	fd := int(null.Fd())
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		p, err := c.Start(Command{Argv: []string{"true"}, Files: []int{fd, fd, fd}})
		took = append(took, time.Since(begin))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns/start")
}
