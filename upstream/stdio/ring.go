package stdio

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	ringSize  = 64 << 10 // of standard error kept per program
	tailLines = 8
	tailBytes = 1 << 10
)

// A ring keeps the last bytes written to it.
type ring struct {
	limiter rpc.Limiter

	mu  sync.Mutex
	buf []byte // of at most twice ringSize, so that few writes move it; guarded by mu
}

// Write never fails.
func (r *ring) Write(p []byte) (int, error) {
	n := len(p)
	r.limiter.Wait(float64(n), nil) // a program that writes too fast waits
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buf = append(r.buf, p[max(0, n-ringSize):]...)
	if len(r.buf) > 2*ringSize {
		r.buf = append(r.buf[:0], r.buf[len(r.buf)-ringSize:]...)
	}
	return n, nil
}

func (r *ring) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.buf[max(0, len(r.buf)-ringSize):])
}

// escapes matches terminal escapes: colours, cursor moves, titles.
var escapes = lazy.Regexp(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])`)

// tail returns the last lines, without terminal escapes and blank lines.
func (r *ring) tail() string {
	text := strings.ToValidUTF8(escapes().ReplaceAllString(r.String(), ""), "\uFFFD")
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \r\n\t"); line != "" {
			lines = append(lines, line)
		}
	}
	lines = lines[max(0, len(lines)-tailLines):]
	tail := strings.Join(lines, "\n")
	if cut := len(tail) - tailBytes; cut > 0 {
		for cut < len(tail) && !utf8.RuneStart(tail[cut]) {
			cut++
		}
		tail = "…" + tail[cut:]
	}
	return tail
}
