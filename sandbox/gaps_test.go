package sandbox

import (
	"strings"
	"testing"
)

func TestGaps(t *testing.T) {
	for landlock, want := range map[int]int{0: 4, 1: 3, 2: 3, 3: 2, 4: 1, 5: 1, 6: 0, 9: 0} {
		got := gaps(landlock)
		if len(got) != want {
			t.Errorf("Landlock %d: got %d gaps, want %d: %q", landlock, len(got), want, got)
		}
		if landlock == 0 && !strings.Contains(got[0], "only jq and sleep") {
			t.Errorf("without Landlock: got %q", got[0])
		}
	}
}
