package store

import (
	"fmt"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	maxName = 512 // bytes
	maxPart = 255 // bytes, of all usual file systems
)

// checkName checks the name of an object.
func checkName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("the name %s of an object is longer than %d bytes", texts.Quote(texts.Cut(name, 40)), maxName)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || len(part) > maxPart || strings.ContainsFunc(part, foreign) {
			return fmt.Errorf("the name %s of an object has the part %s; a part is 1 to %d letters, digits, \"_\", \"-\" and \".\", and neither \".\" nor \"..\"",
				texts.Quote(name), texts.Quote(texts.Cut(part, 40)), maxPart)
		}
	}
	return nil
}

// foreign reports whether a rune is in no name.
func foreign(c rune) bool {
	return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.')
}

// checkPrefix checks the beginning of names.
func checkPrefix(prefix string) error {
	if len(prefix) == maxName {
		return checkName(prefix)
	}
	return checkName(prefix + "0")
}
