package pipelines

import "bytes"

// tooDeep reports whether brackets of a text are nested deeper than [maxNested], before its parser nests as deep.
func tooDeep(text []byte) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch rest := text[i:]; {
		case rest[0] == '{' || rest[0] == '[':
			if depth++; depth > maxNested {
				return true
			}
		case rest[0] == '}' || rest[0] == ']':
			depth--
		case rest[0] == '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(rest, []byte("//")):
			i += past(rest, "\n")
		case bytes.HasPrefix(rest, []byte("/*")):
			i += past(rest[2:], "*/") + 2
		}
	}
	return false
}

// past is how far the end of a comment is.
func past(text []byte, end string) int {
	if at := bytes.Index(text, []byte(end)); at >= 0 {
		return at + len(end) - 1
	}
	return len(text)
}
