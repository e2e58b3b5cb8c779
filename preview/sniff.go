package preview

import (
	"bytes"
	"errors"
	"strings"
)

const (
	sniffBytes  = 64 << 10 // bytes that decide the format
	prefixLines = 8        // lines of text before JSON, at most
)

// begins are the first bytes of documents: at the beginning of the data, and after lines of text.
var begins = [2]string{"{[\"-0123456789tfn\n\x1e", "{["}

// sniffJSON looks for JSON documents near the beginning of the data. It returns their offset and the number of lines of
// text before them.
func sniffJSON(head []byte, whole bool) (at int, lines int64, ok bool) {
	if len(head) > sniffBytes {
		head, whole = head[:sniffBytes], false
	}
	for ; lines <= prefixLines; lines++ {
		rest := bytes.TrimLeft(head[at:], " \t\r")
		if len(rest) > 0 && strings.IndexByte(begins[min(lines, 1)], rest[0]) >= 0 && isJSON(head[at:], whole) {
			return at, lines, true
		}
		n := bytes.IndexByte(head[at:], '\n')
		if n < 0 {
			break
		}
		at += n + 1
	}
	return 0, 0, false
}

// isJSON guesses whether b is JSON: it holds at least as many documents as other lines.
func isJSON(b []byte, whole bool) bool {
	s := scanBytes(b)
	s.seq = len(b) > 0 && b[0] == 0x1e
	good, bad := 0, 0
	for more := true; more; {
		proof, first := false, true // the document has a token with which text hardly begins
		began, tokens, err := s.document(func(k kind) {
			proof = proof || !first && s.proves(k)
			first = false
		})
		e, broken := errors.AsType[*syntaxError](err)
		switch {
		case !broken && tokens == 0:
			more = false
		case broken && e.end:
			if more = false; proof || !whole {
				good++
			}
		case broken && good > 0 && strings.HasSuffix(e.msg, "'`'"): // the end of a fence: text follows
			more = false
		case proof:
			good++
			more = !broken || e.line == began && s.resync()
		case !broken && s.lineEnds():
			good++
		default:
			bad++
			more = !(broken && e.line != began) && s.resync()
		}
	}
	return good > 0 && good >= bad
}

// proves reports whether a token that is not the first shows that this is JSON: lines of logs begin with [INFO] or
// [12:30:01], but not with strings or containers in containers.
func (s *scanner) proves(k kind) bool {
	return k != tokKey && k != tokClose && (k != kindNumber || s.depth > 0 && s.inObject())
}

// lineEnds reports whether nothing follows on this line.
func (s *scanner) lineEnds() bool {
	rest := bytes.TrimLeft(s.buf[s.r:], " \t\r")
	return len(rest) == 0 || rest[0] == '\n'
}
