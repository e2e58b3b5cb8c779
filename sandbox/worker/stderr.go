//go:build linux

package worker

import (
	"bytes"
	"fmt"
)

// The kept parts of a command's standard error. The beginning names the cause, the end the last words.
const (
	stderrHead = 8 << 10
	stderrTail = 56 << 10
	stderrLine = 4 << 10 // a longer line counts as several
)

// A stderr keeps the beginning and the end of what a command says, and says a line that repeats once, with its count.
// Lines that differ only in their numbers are repeats: jq complains once about every document.
type stderr struct {
	line    []byte // not ended yet
	last    []byte // the line before, not kept yet
	key     []byte // last without its numbers
	repeats int

	head, tail []byte
	dropped    int64
}

// Write never fails.
func (s *stderr) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n') + 1
		whole := end > 0
		if !whole {
			end = len(p)
		}
		if room := stderrLine - len(s.line); end > room {
			end, whole = room, true
		}
		s.line = append(s.line, p[:end]...)
		p = p[end:]
		if whole {
			s.endLine()
		}
	}
	return n, nil
}

func (s *stderr) endLine() {
	key := withoutNumbers(s.line)
	if s.repeats > 0 && bytes.Equal(key, s.key) {
		s.repeats++
	} else {
		s.flush()
		s.last, s.key, s.repeats = append(s.last[:0], s.line...), key, 1
	}
	s.line = s.line[:0]
}

// flush keeps the line that was held back.
func (s *stderr) flush() {
	if s.repeats == 0 {
		return
	}
	line := s.last
	if s.repeats > 1 {
		line = fmt.Appendf(nil, "%s (%d times)\n", bytes.TrimRight(line, "\n"), s.repeats)
	}
	s.keep(line)
	s.repeats = 0
}

func (s *stderr) keep(p []byte) {
	n := min(len(p), stderrHead-len(s.head))
	s.head = append(s.head, p[:n]...)
	s.tail = append(s.tail, p[n:]...)
	if len(s.tail) > 2*stderrTail { // not at every line: moving the rest costs more than the line
		s.trim()
	}
}

func (s *stderr) trim() {
	if over := len(s.tail) - stderrTail; over > 0 {
		s.dropped += int64(over)
		s.tail = append(s.tail[:0], s.tail[over:]...)
	}
}

// text ends the last line and returns what was kept.
func (s *stderr) text() string {
	if len(s.line) > 0 {
		s.endLine()
	}
	s.flush()
	s.trim()
	if s.dropped == 0 {
		return string(s.head) + string(s.tail)
	}
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", s.head, s.dropped, s.tail)
}

// beginning returns at most n bytes of the text.
func (s *stderr) beginning(n int) string {
	text := s.text()
	return text[:min(n, len(text))]
}

// withoutNumbers returns a copy of line with every run of digits replaced by one '#', and without the values that jq
// quotes behind their kinds: string ("a").
func withoutNumbers(line []byte) []byte {
	key := make([]byte, 0, len(line))
	for i := 0; i < len(line); i++ {
		c := line[i]
		if c == '(' && i+1 < len(line) && bytes.IndexByte([]byte(`"{[`), line[i+1]) >= 0 && i > 0 && line[i-1] == ' ' {
			i += valueEnd(line[i:]) - 1
			continue
		}
		if c >= '0' && c <= '9' {
			c = '#'
			if len(key) > 0 && key[len(key)-1] == '#' {
				continue
			}
		}
		key = append(key, c)
	}
	return key
}

// valueEnd returns where the value in parentheses ends that text begins with: at what jq puts behind it, or with the line.
func valueEnd(text []byte) int {
	end := len(text)
	for _, behind := range []string{") and ", ") by: ", ") cannot "} {
		if i := bytes.Index(text, []byte(behind)); i >= 0 {
			end = min(end, i+1)
		}
	}
	return end
}
