package store

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

const maxName = 512 // bytes

// part is the form of what stands between two slashes of a name.
var part = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// checkName refuses names that a directory or S3 may take for something else.
func checkName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("the name of an object has %d bytes, and may have %d", len(name), maxName)
	}
	for p := range strings.SplitSeq(name, "/") {
		if !part.MatchString(p) || strings.Trim(p, ".") == "" || strings.HasPrefix(p, temporary) {
			return fmt.Errorf("%s is no name of an object", texts.Quote(name))
		}
	}
	return nil
}
