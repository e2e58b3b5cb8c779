package toolhive

import (
	"fmt"
	"path"
	"strings"
)

// A Filter picks workloads by globs, where * is any run of characters, ? one, and [a-z] one of a set. One that begins
// with ! leaves out what it matches. An empty list picks everything that is not left out.
type Filter struct {
	Groups []string // of ToolHive
	Names  []string // of workloads
	Labels []string // KEY=GLOB, or KEY for any value
}

// check refuses globs that cannot be read.
func (f Filter) check() error {
	for _, list := range [][]string{f.Groups, f.Names, f.Labels} {
		for _, pattern := range list {
			if _, err := path.Match(strings.TrimPrefix(pattern, "!"), ""); err != nil || strings.TrimPrefix(pattern, "!") == "" {
				return fmt.Errorf("%q is not a glob such as git* or !test-*", pattern)
			}
		}
	}
	return nil
}

// match reports whether the filter picks a workload.
func (f Filter) match(w Workload) bool {
	return picks(f.Groups, func(glob string) bool { return matches(glob, w.Group) }) &&
		picks(f.Names, func(glob string) bool { return matches(glob, w.Name) }) &&
		picks(f.Labels, func(glob string) bool {
			key, glob, valued := strings.Cut(glob, "=")
			value, there := w.Labels[key]
			return there && (!valued || matches(glob, value))
		})
}

// picks applies a list of globs to what is asks about.
func picks(list []string, is func(glob string) bool) bool {
	picked, any := false, false
	for _, pattern := range list {
		glob, not := strings.CutPrefix(pattern, "!")
		switch {
		case not && is(glob):
			return false
		case !not:
			any = true
			picked = picked || is(glob)
		}
	}
	return picked || !any
}

// matches compares a text with a glob that was checked. What is opaque has no separators: / is a character.
func matches(glob, text string) bool {
	ok, err := path.Match(strings.ReplaceAll(glob, "/", "\x00"), strings.ReplaceAll(text, "/", "\x00"))
	return err == nil && ok
}
