package docker

import (
	"strconv"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// fixedRunc are the first releases of runc, by minor version, in which a container cannot get out by racing the mounts
// of its start (CVE-2025-31133, CVE-2025-52565, CVE-2025-52881). 1.1 and before got none.
var fixedRunc = map[[2]int]release{
	{1, 2}: {8, 0},
	{1, 3}: {3, 0},
	{1, 4}: {0, 3},
}

// A release is the rest of a version: "1.4.0-rc.3" is {0, 3}, and 0 stands for no candidate.
type release struct{ patch, candidate int }

var runcVersion = lazy.Regexp(`^runc (\d{1,6})\.(\d{1,6})\.(\d{1,6})(?:-rc\.?(\d{1,6}))?`)

// OldRunc reports whether a [Status.Runtime] is a runc with known ways out of a container. Distributions may have
// fixed theirs without another number. Other runtimes are not known to have them.
func OldRunc(runtime string) bool {
	m := runcVersion().FindStringSubmatch(runtime)
	if m == nil {
		return false
	}
	var n [4]int
	for i, digits := range m[1:] {
		n[i], _ = strconv.Atoi(digits) // at most six digits, or no candidate
	}
	fixed, ok := fixedRunc[[2]int{n[0], n[1]}]
	switch {
	case !ok:
		return n[0] < 1 || n[0] == 1 && n[1] < 2
	case n[2] != fixed.patch:
		return n[2] < fixed.patch
	}
	return m[4] != "" && (fixed.candidate == 0 || n[3] < fixed.candidate)
}
