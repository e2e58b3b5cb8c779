package stages

// valueScanner finds the end of a JSON value by its brackets and quotes. It does not validate.
type valueScanner struct {
	depth             int
	inString, escaped bool
	scalar            bool // a number or word has begun
	closed            bool
}

// ended reports whether the end of the input is the end of the value.
func (v *valueScanner) ended() bool { return v.closed || v.scalar && v.depth == 0 && !v.inString }

// scan reads p and returns how much of it belongs to the value, and whether that ended it.
func (v *valueScanner) scan(p []byte) (n int, done bool) {
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case v.inString:
			i += v.skipString(p[i:])
			if v.inString || v.depth > 0 {
				continue
			}
			v.closed = true
			return i + 1, true
		case c == '"':
			if v.scalar {
				return i, true
			}
			v.inString = true
		case c == '{' || c == '[':
			if v.scalar {
				return i, true
			}
			v.depth++
		case c == '}' || c == ']':
			if v.depth == 0 {
				return i, true
			}
			if v.depth--; v.depth == 0 {
				v.closed = true
				return i + 1, true
			}
		case v.depth == 0 && (c == ',' || c == ':' || blank(c)):
			return i, true
		case v.depth == 0:
			v.scalar = true
		}
	}
	return len(p), false
}

// skipString reads p inside of a string and returns the index of the last byte that it read.
func (v *valueScanner) skipString(p []byte) int {
	for i, c := range p {
		switch {
		case v.escaped:
			v.escaped = false
		case c == '\\':
			v.escaped = true
		case c == '"':
			v.inString = false
			return i
		}
	}
	return len(p) - 1
}
