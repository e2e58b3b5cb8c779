package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// readPasted waits for a line that is the right redirected address, or its query.
func (p *program) readPasted(ctx context.Context, right func(address string) bool, found func(address string)) {
	lines := p.typed.lines(p.stdin)
	for {
		var line string
		var more bool
		select {
		case line, more = <-lines:
		case <-ctx.Done():
		}
		if !more {
			return
		}
		if !strings.Contains(line, "?") {
			line = "?" + line
		}
		u, err := url.Parse(line)
		switch {
		case line == "?":
			fmt.Fprintf(p.stderr, "This line is longer than %s, and no address is. Paste the address alone.\n", texts.Bytes(maxTyped))
		case err != nil || !u.Query().Has("state"):
			fmt.Fprintln(p.stderr, "This is not an address that a sign-in ends at: it has \"code=\" and \"state=\". Copy all of it.")
		case !right(line):
			fmt.Fprintln(p.stderr, "This address belongs to another sign-in. Paste the one that the address above has led to.")
		default:
			found(line)
			return
		}
	}
}

// maxTyped bounds a line that a person types or pastes, in bytes.
const maxTyped = 64 << 10

// typed are the lines of standard input. One goroutine reads them for all sign-ins of a command, because a read of a terminal
// cannot be ended. It ends with the input.
type typed struct {
	once sync.Once
	all  chan string
}

// lines returns the lines that are not empty. A line that is too long is an empty one. It is closed at the end of the input.
func (t *typed) lines(in io.Reader) <-chan string {
	t.once.Do(func() {
		t.all = make(chan string)
		go func() {
			defer close(t.all)
			reader := bufio.NewReaderSize(in, maxTyped)
			for {
				part, err := reader.ReadSlice('\n')
				line, long := strings.TrimSpace(string(part)), errors.Is(err, bufio.ErrBufferFull)
				for errors.Is(err, bufio.ErrBufferFull) {
					line = ""
					_, err = reader.ReadSlice('\n')
				}
				if line != "" || long {
					t.all <- line
				}
				if err != nil {
					return
				}
			}
		}()
	})
	return t.all
}
