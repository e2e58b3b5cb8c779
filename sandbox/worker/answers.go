//go:build linux

package worker

import (
	"io"
	"sync/atomic"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// An answerWriter writes answers in pieces as large as can be had without waiting. After an error it is mute.
type answerWriter struct {
	w      io.Writer
	buf    []byte
	broken bool
	moves  atomic.Uint64 // odd while a write is under way
}

func (a *answerWriter) output(p []byte) {
	a.buf = wire.AppendOutput(a.buf, p)
	a.keepSmall()
}

func (a *answerWriter) done(u wire.Usage) {
	a.buf = wire.AppendDone(a.buf, u)
	a.keepSmall()
}

func (a *answerWriter) failed(o wire.Outcome) {
	var err error
	if a.buf, err = wire.AppendFailed(a.buf, o); err != nil {
		a.broken = true // it is bounded far below what is allowed
	}
	a.keepSmall()
}

func (a *answerWriter) keepSmall() {
	if len(a.buf) >= wire.MaxData {
		a.flush()
	}
}

func (a *answerWriter) flush() {
	if len(a.buf) > 0 && !a.broken {
		a.moves.Add(1)
		_, err := a.w.Write(a.buf)
		a.moves.Add(1)
		a.broken = err != nil
	}
	a.buf = a.buf[:0]
}
