package toolhive

import (
	"fmt"
	"path"
	"slices"
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
	for _, pattern := range slices.Concat(f.Groups, f.Names, f.Labels) {
		glob := strings.TrimPrefix(pattern, "!")
		if _, err := path.Match(glob, ""); err != nil || glob == "" {
			return fmt.Errorf("%q is not a glob such as git* or !test-*", pattern)
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

// picks applies a list of globs; is reports whether one matches.
func picks(list []string, is func(glob string) bool) bool {
	wanted, picked := false, false
	for _, pattern := range list {
		glob, not := strings.CutPrefix(pattern, "!")
		if not && is(glob) {
			return false
		}
		wanted = wanted || !not
		picked = picked || !not && is(glob)
	}
	return picked || !wanted
}

// matches compares a text with a glob that was checked. Names are opaque, so / is a character like others.
func matches(glob, text string) bool {
	ok, err := path.Match(strings.ReplaceAll(glob, "/", "\x00"), strings.ReplaceAll(text, "/", "\x00"))
	return err == nil && ok
}
