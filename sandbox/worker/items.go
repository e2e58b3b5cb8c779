//go:build linux

package worker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// How long an applet works on the items of one input, and how much their outputs may be. Items after that are sent again.
const (
	itemsTime   = 10 * time.Millisecond
	itemsOutput = 512 << 10
	itemsInput  = 1 << 20
)

// forItems returns a runner whose input are many items and whose output are their answers, see package wire. They are
// written at the end: the gateway waits for all of them.
func forItems(run programs.Runner) programs.Runner {
	return func(ctx context.Context, files programs.IO) int {
		left, err := io.ReadAll(io.LimitReader(files.In, itemsInput))
		if err != nil {
			return jailStatus
		}
		start, last := time.Now(), 0
		var answers []byte
		out := &itemOutput{}
		for len(left) > 0 && (len(answers) == 0 || len(answers) < itemsOutput && time.Since(start) < itemsTime) {
			item, rest, ok := wire.CutItem(left)
			if !ok {
				fmt.Fprintln(files.Err, "the input is cut off within an item")
				return jailStatus
			}
			out.b = out.b[:0]
			said := new(stderr)
			status := run(ctx, programs.IO{In: bytes.NewReader(item), Out: out, Err: said})
			text := out.b
			if status != 0 {
				text = []byte(said.text())
			}
			if out.over || len(text) > wire.MaxAnswer || !exited(status, string(text)) {
				last = jailStatus
				break
			}
			answers, left = wire.AppendAnswer(answers, status, text), rest
		}
		if _, err := files.Out.Write(answers); err != nil {
			return jailStatus
		}
		return last
	}
}

// exited reports whether an applet with that exit status and message has ended by itself, and not at a limit.
func exited(status int, message string) bool {
	p := process{tool: &tool{reader: true}}
	f := p.byStatus(&wire.Failure{Stderr: message}, status, false)
	return f == nil || f.Reason == wire.Exit
}

// An itemOutput keeps what is written for an item, if that is not too much.
type itemOutput struct {
	b    []byte
	over bool
}

func (o *itemOutput) Write(p []byte) (int, error) {
	if o.over = o.over || len(o.b)+len(p) > wire.MaxAnswer; o.over {
		return 0, io.ErrShortWrite
	}
	o.b = append(o.b, p...)
	return len(p), nil
}
