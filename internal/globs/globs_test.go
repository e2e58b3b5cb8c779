package globs

import (
	"strings"
	"testing"
)

// TestMatch: a star stands for any characters, a question mark for one, and everything else for itself.
func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true},
		{"a", "ab", false},
		{"a*", "a", true},
		{"a*c", "a/b\nc", true},
		{"?", "é", true},
		{"?", "", false},
		{"a.c", "abc", false},
		{"[ab]", "a", false},
		{"*", "", true},
		{`a\*`, `a\b`, true},
	} {
		if got := Compile("other", c.pattern).Match(c.name); got != c.want {
			t.Errorf("%q matches %q: %t", c.pattern, c.name, got)
		}
	}
	if Compile().Match("") {
		t.Error("no pattern matches")
	}
}

// TestManyStars: a match ends, whatever the pattern: its time is linear.
func TestManyStars(t *testing.T) {
	if Compile(strings.Repeat("*a", 100) + "b").Match(strings.Repeat("a", 10_000)) {
		t.Error("it matches")
	}
}
