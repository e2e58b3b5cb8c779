package sandbox

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// TestChecksSize: of what a worker says of a check no more is kept than an error shows.
func TestChecksSize(t *testing.T) {
	long := strings.Repeat("word ", 100_000)
	var k checks
	for _, test := range []struct {
		name  string
		said  checked
		known bool
	}{
		{"a failure", checked{failure: &wire.Failure{Reason: wire.Exit, Status: 2, Stderr: long, Detail: long, Signal: long, Sample: []byte(long)}}, true},
		{"a short verdict", checked{verdict: programs.Verdict{Mistake: "a word too many"}}, true},
		{"a long verdict", checked{verdict: programs.Verdict{Mistake: long}}, false},
	} {
		key := sha256.Sum256([]byte(test.name))
		k.put(key, test.said)
		got, known := k.get(key)
		if known != test.known {
			t.Errorf("%s: it is kept: %v", test.name, known)
		}
		if f := got.failure; f != nil && (f.Status != 2 || len(f.Stderr)+len(f.Detail)+len(f.Signal)+len(f.Sample) > 2*stderrShown) {
			t.Errorf("%s: %d bytes are kept, with status %d", test.name, len(f.Stderr)+len(f.Detail)+len(f.Signal)+len(f.Sample), f.Status)
		}
	}
}
