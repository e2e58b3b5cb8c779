//go:build !race

package shell_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// TestRandomLines: what the rules accept looks only for allowed commands in a real shell, whatever the line.
func TestRandomLines(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, r := range rows(t) {
		line := strings.ReplaceAll(r.Line, "ls", "ok")
		if safe(line) {
			lines = append(lines, line, strings.ReplaceAll(line, "canary", "ok"))
		}
	}
	seed := uint64(parttest.Times(1, int(time.Now().UnixNano())))
	s, r := newStage(t), rand.New(rand.NewPCG(seed, 0))
	want := parttest.Times(100, 20_000)
	for accepted := 0; accepted < want && !t.Failed(); {
		line := random(r, lines)
		for _, name := range []string{"dash", "bash"} {
			if s.verify(t, name, line) {
				accepted++
			}
		}
	}
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}
