//go:build !race

package workspace_test

import (
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/workspace"
)

func TestIgnoreLimits(t *testing.T) {
	for _, text := range []string{strings.Repeat("a", 5000), strings.Repeat("a\n", 10_001), strings.Repeat("*a*b\n", 9000)} {
		if _, err := workspace.ParseIgnore(text); err == nil || workspace.KindOf(err) != workspace.InvalidArgument {
			t.Errorf("ParseIgnore of %d bytes: error %v", len(text), err)
		}
	}
	// A pattern that makes a backtracking matcher run forever.
	list, err := workspace.ParseIgnore(strings.Repeat("*a", 500) + "*b")
	if err != nil {
		t.Fatal(err)
	}
	if list.Match(strings.Repeat("a", 4000), false) {
		t.Error("matched")
	}
}
