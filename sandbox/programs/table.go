package programs

import (
	"slices"
	"strings"
)

// table is sorted by name. A new program is a row of its family, which says what it is. Programs whose purpose is to run
// others, to write files or to open connections (xargs, find, tee, split, env, timeout, dc, ed, tar, ...) have no place in it.
var table = byName(
	fieldPrograms, grepPrograms, linePrograms, listPrograms, numberPrograms, sortPrograms, textPrograms,
	[]Program{awk, date, jqProgram, sed, sleep},
)

func byName(families ...[]Program) (all []*Program) {
	for _, family := range families {
		for i := range family {
			all = append(all, &family[i])
		}
	}
	slices.SortFunc(all, func(a, b *Program) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// What the tools' own version texts hold.
const (
	coreutils = "GNU coreutils"
	utilLinux = "util-linux"
)

// common are the options that every program has.
var common = []option{
	flag(0, "version"),
	deny(0, "help", nothing, "usage texts describe options that are not offered here", "list_available_shell_commands describes the command"),
}
