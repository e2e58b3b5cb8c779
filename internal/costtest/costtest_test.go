//go:build !race

package costtest

import (
	"fmt"
	"testing"
)

// recorder is a test that records its errors.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { r.said += fmt.Sprintf(format, args...) }

func TestRun(t *testing.T) {
	var kept []byte
	for name, c := range map[string]struct {
		work func()
		want bool
	}{
		"cheap":  {func() { kept = make([]byte, 1<<20) }, false},
		"memory": {func() { kept = make([]byte, Memory+garbage+1<<20) }, true},
		"time": {func() {
			for begun := cpuTime(); cpuTime()-begun <= slower*CPU; {
			}
		}, true},
	} {
		r := &recorder{TB: t}
		if Run(r, c.work); (r.said != "") != c.want {
			t.Errorf("%s: it says %q", name, r.said)
		}
	}
	_ = kept
}
