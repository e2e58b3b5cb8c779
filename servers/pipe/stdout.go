package pipe

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	defaultStdout = 1 << 20  // bytes of standard output of a server without a gateway
	metaRoom      = 64 << 10 // of a result, for what is neither standard output nor a text of the line
	shownLine     = 8 << 10  // bytes of the commands in a result
)

// shown returns the texts of commands as a result shows them.
func shown(commands []Command) []string {
	all := make([]string, len(commands))
	for i, c := range commands {
		all[i] = texts.Cut(c.Text, shownLine/len(commands))
	}
	return all
}

// room returns the most bytes of standard output, and of its JSON, where results may have so many bytes; 0: no limit is set.
func room(results int64, commands []Command) (most, encoded int64) {
	if results == 0 {
		return defaultStdout, math.MaxInt64
	}
	encoded = results - metaRoom
	for i, text := range shown(commands) {
		if save := commands[i].Save; save != nil {
			text += save.Path + save.Path // and of the mirror
		}
		for _, c := range []byte(text) {
			encoded -= jsonCost(c)
		}
	}
	return results, max(encoded, 0)
}

// stdout keeps the beginning of the standard output and counts all of it.
type stdout struct {
	most    int64 // bytes that are kept
	encoded int64 // bytes that the JSON of what is kept may have, once as a value and once in the text of the result

	text strings.Builder
	size int64
	full bool
}

// Write implements [io.Writer]. It takes everything.
func (s *stdout) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	n := 0
	for ; n < len(p) && !s.full; n++ {
		s.encoded -= jsonCost(p[n])
		s.full = s.encoded < 0 || int64(s.text.Len()+n) >= s.most
		if s.full {
			break
		}
	}
	s.text.Write(p[:n])
	return len(p), nil
}

// jsonCost is the most that a byte of text takes in the two JSON texts of a result.
func jsonCost(c byte) int64 {
	switch {
	case c == '"' || c == '\\':
		return 2 + 4
	case c == '\n' || c == '\t':
		return 2 + 3
	case c < ' ':
		return 6 + 7
	case c >= utf8.RuneSelf: // it may be replaced
		return 3 + 3
	}
	return 1 + 1
}

// string returns the kept text, whole characters of it. Bytes that are not UTF-8 are replaced.
func (s *stdout) string() string {
	text := s.text.String()
	if s.full { // the last character may be cut
		for i := len(text) - 1; i >= 0 && i >= len(text)-utf8.UTFMax; i-- {
			if utf8.RuneStart(text[i]) {
				if !utf8.FullRuneInString(text[i:]) {
					text = text[:i]
				}
				break
			}
		}
	}
	text, _ = texts.Valid([]byte(text))
	return text
}
