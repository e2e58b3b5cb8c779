//go:build linux

package worker

import (
	"io"
	"syscall"
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// TestLaneLost: when the applet of a lane is gone, a limit is held against the item that has reached it, and the signal
// against an item that was alone; not against the one that came next because the kill was a moment late.
func TestLaneLost(t *testing.T) {
	timeout := func() *wire.Failure { return &wire.Failure{Reason: wire.Timeout} }
	for _, test := range []struct {
		name    string
		failure *wire.Failure // that was found
		failed  int           // of which item
		number  int           // the item that is at work
		items   int           // under way, with it
		over    bool
		want    wire.Reason // of the item at work; empty: it is run anew
	}{
		{"it has reached a limit", timeout(), 3, 3, 5, false, wire.Timeout},
		{"alone it has reached a limit", timeout(), 3, 3, 1, false, wire.Timeout},
		{"the one before it has reached a limit, and was answered", timeout(), 3, 4, 5, false, ""},
		{"the same, and it is alone", timeout(), 3, 4, 1, false, ""},
		{"killed, with others under way", nil, 0, 3, 2, false, ""},
		{"killed, alone", nil, 0, 3, 1, false, wire.Signal},
		{"cancelled", nil, 0, 3, 1, true, ""},
	} {
		l := &lane{answers: &answerWriter{w: io.Discard}, items: make([]laneItem, test.items), failure: test.failure, failed: test.failed, over: test.over}
		p := &process{
			tool: &tool{Program: programs.Program{Name: "jq"}}, key: "jq", stderr: new(stderr), kills: oomKills(),
			task: &task{state: jail.State{Status: syscall.WaitStatus(syscall.SIGKILL)}},
		}
		l.lost(p, test.number)
		got := wire.Reason("")
		if l.failure != nil {
			got = l.failure.Reason
		}
		if got != test.want || !l.over {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
