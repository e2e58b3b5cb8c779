package stages_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestMemory: what a run holds comes out of the memory of the process, and a run that finds no room ends and says so.
// Data that can wait on the disk does. Everything is given back.
func TestMemory(t *testing.T) {
	const waits = `[{"type":"command","command":"cat"},{"type":"tool","server":"demo","name":"write","for_each":true,"concurrency":1,"collect":"lines"}]`
	big := strings.Repeat("x", 100_000)
	for _, tt := range []struct {
		name, pipeline, input string
		room                  int64
		full                  bool
	}{
		{"an item", `[{"type":"tool","server":"demo","name":"say","for_each":true}]`, big, 1 << 20, false},
		{"an item that is too long", `[{"type":"tool","server":"demo","name":"say","for_each":true}]`, big, 60_000, true},
		{"input that is too long", `[{"type":"tool","server":"demo","name":"say"}]`, big, 60_000, true},
		{"input that waits on the disk", waits, lines(6_000), 20_000, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			d := w.deps()
			d.Memory = memory.New(tt.room).Share("results", tt.room)
			d.Limits.SpoolDir = t.TempDir()
			_, _, err := w.runWith(t, tt.pipeline, tt.input, d, stages.RunOptions{})
			var e *stages.Error
			switch {
			case !tt.full && err != nil:
				t.Error(err)
			case tt.full && (!errors.As(err, &e) || e.Code != stages.LimitExceeded || e.Limit != "memory" || !strings.Contains(e.Msg, "raise --memory")):
				t.Errorf("got %v", err)
			}
			if n := d.Memory.Used(); n != 0 {
				t.Errorf("%d bytes still count", n)
			}
		})
	}
}
