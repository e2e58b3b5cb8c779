package stdio

import (
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	ringSize  = 64 << 10 // of standard error kept per program
	tailLines = 8
	tailBytes = 1 << 10
)

// A ring keeps the last bytes written to it.
type ring struct {
	pace rpc.Pace

	mu   sync.Mutex
	buf  []byte // guarded by mu
	next int    // where the next byte goes once buf is full; guarded by mu
}

// Write never fails.
func (r *ring) Write(p []byte) (int, error) {
	n := len(p)
	r.pace.Wait(float64(n), nil) // whoever writes too fast waits
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(p) >= ringSize {
		r.buf, r.next = append(r.buf[:0], p[len(p)-ringSize:]...), 0
		return n, nil
	}
	if room := ringSize - len(r.buf); room > 0 {
		k := min(room, len(p))
		r.buf, p = append(r.buf, p[:k]...), p[k:]
	}
	for len(p) > 0 {
		k := copy(r.buf[r.next:], p)
		r.next, p = (r.next+k)%ringSize, p[k:]
	}
	return n, nil
}

func (r *ring) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.buf[r.next:]) + string(r.buf[:r.next])
}

// escapes matches what terminals do not print: colours, cursor moves, titles.
var escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])`)

// tail returns the last lines, without terminal escapes and blank lines.
func (r *ring) tail() string {
	text := strings.ToValidUTF8(escapes.ReplaceAllString(r.String(), ""), "\uFFFD")
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
