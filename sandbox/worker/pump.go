//go:build linux

package worker

import (
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// A pump carries data from one command to the next, counting it. There is one before the first command, one between
// neighbours and one behind the last.
type pump struct {
	src   io.Reader
	dst   io.Writer
	close [2]func() // end src and dst; each may be called more than once, and while the pump uses them

	endLine bool // the command behind is given the newline that the data lacks at its end; it is not counted

	taken   atomic.Int64  // bytes that the command before has written
	given   atomic.Int64  // bytes that the command behind has been given
	moves   atomic.Uint64 // odd while a write is under way
	ended   atomic.Bool   // src has ended by itself
	refused atomic.Bool   // dst did not want more
	done    chan struct{}

	sample []byte // the beginning of the data; to be read after done
}

func (p *pump) run(b *wire.Buffers) {
	defer close(p.done)
	buf := b.Get()
	defer b.Put(buf)
	last := byte('\n')
	for {
		n, err := p.src.Read(*buf)
		if n > 0 {
			last = (*buf)[n-1]
		}
		if n > 0 && !p.move((*buf)[:n]) {
			p.refused.Store(true)
			break
		}
		if err != nil {
			if p.endLine && err == io.EOF && last != '\n' {
				p.moves.Add(1)
				_, _ = p.dst.Write([]byte{'\n'}) // one that reads no more needs none
				p.moves.Add(1)
			}
			p.ended.Store(err == io.EOF)
			break
		}
	}
	p.stop()
}

func (p *pump) move(data []byte) bool {
	p.taken.Add(int64(len(data)))
	if room := wire.SampleSize - len(p.sample); room > 0 {
		p.sample = append(p.sample, data[:min(room, len(data))]...)
	}
	p.moves.Add(1)
	n, err := p.dst.Write(data)
	p.moves.Add(1)
	p.given.Add(int64(n))
	return err == nil
}

// stop closes both ends: the command before gets SIGPIPE when it writes on, the command behind sees the end.
func (p *pump) stop() {
	p.close[0]()
	p.close[1]()
}

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
