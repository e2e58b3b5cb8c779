package store

import (
	"context"
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

// foreign reports whether names may not contain c.
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

// checkCall checks the arguments of a method.
func checkCall(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// checkPut checks the arguments of Put.
func checkPut(ctx context.Context, name string, data []byte, most int64) error {
	if int64(len(data)) > most {
		return fmt.Errorf("the object %s has %d bytes, more than %d", texts.Quote(texts.Cut(name, 40)), len(data), most)
	}
	return checkCall(ctx, name)
}

// tooLong is the error of an object of n bytes.
func tooLong(n int64) error {
	return fmt.Errorf("%w: it has %d bytes, more than %d", ErrDamaged, n, maxStored)
}
