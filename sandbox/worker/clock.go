//go:build linux

package worker

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// tick is how often the clocks of a chain are looked at.
const tick = 20 * time.Millisecond

// A clock measures how long a command has had something to do: there was input that it had not read, or its input had
// ended, and its reader was ready. Waiting for a slow tool is not the command's fault.
type clock struct {
	in, out *pump
	stdin   *os.File // the pump's end of the pipe to the command
	used    time.Duration
	moves   uint64 // of out, at the last tick
}

// advance counts d if the command was busy at this moment.
func (c *clock) advance(d time.Duration) {
	moves := c.out.moves.Load()
	// A write that was under way at the last tick as well: the reader does not take it.
	stuck := moves%2 == 1 && moves == c.moves
	c.moves = moves
	if !stuck && c.hasInput() {
		c.used += d
	}
}

func (c *clock) hasInput() bool {
	return c.in.ended.Load() || c.in.moves.Load()%2 == 1 || unread(c.stdin) > 0
}

// unread returns how many bytes a pipe holds.
func unread(f *os.File) int {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	// A pipe that has been closed holds nothing for a reader.
	_ = conn.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return n
}
