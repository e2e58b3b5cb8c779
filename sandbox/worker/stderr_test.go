//go:build linux

package worker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStderr(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for _, test := range []struct {
		name   string
		writes []string
		want   string
	}{
		{"nothing", nil, ""},
		{"one", []string{"a\n"}, "a\n"},
		{"in pieces", []string{"a", "b\nc", "d"}, "ab\ncd"},
		{"repeated", []string{"e 1\ne 2\n", "e 33\nf\nf\ng\n"}, "e 1 (3 times)\nf (2 times)\ng\n"},
		{"not neighbours", []string{"a\nb\na\n"}, "a\nb\na\n"},
		{"long line", []string{long}, long},
	} {
		t.Run(test.name, func(t *testing.T) {
			var s stderr
			for _, w := range test.writes {
				if n, err := s.Write([]byte(w)); n != len(w) || err != nil {
					t.Fatalf("Write: got %d, %v", n, err)
				}
			}
			got := s.text()
			if test.name == "long line" { // equal pieces of it are repeats
				if !strings.Contains(got, "(2 times)") {
					t.Errorf("got %.100q", got)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStderrIsBounded(t *testing.T) {
	var s stderr
	for i := range 100_000 {
		fmt.Fprintf(&s, "%s line\n", strings.Repeat("ab", i%100+1))
	}
	got := s.text()
	if len(got) > stderrHead+stderrTail+100 || cap(s.tail) > 4*stderrTail {
		t.Errorf("kept %d bytes, want at most %d and a remark", len(got), stderrHead+stderrTail)
	}
	if !strings.HasPrefix(got, "ab line\nabab line\n") || !strings.Contains(got, "bytes left out") ||
		!strings.HasSuffix(got, strings.Repeat("ab", 100)+" line\n") {
		t.Errorf("got %.100q … %q", got, got[len(got)-100:])
	}
}

func FuzzStderr(f *testing.F) {
	f.Add([]byte("a\nb 1\nb 2\n"), 3)
	f.Fuzz(func(t *testing.T, p []byte, at int) {
		var s stderr
		if at < 0 || at > len(p) {
			at = 0
		}
		s.Write(p[:at])
		s.Write(p[at:])
		if got := s.text(); len(got) > stderrHead+stderrTail+100 {
			t.Errorf("kept %d bytes", len(got))
		}
	})
}
