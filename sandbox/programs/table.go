package programs

import (
	"slices"
	"strings"
)

// families are the rows of the table. A new program is a row of its family, which says what it is. Programs whose purpose is
// to run others, to write files or to open connections (xargs, find, tee, split, env, timeout, dc, ed, tar, ...) have no place
// in it.
var families = [][]Program{
	fieldPrograms, grepPrograms, linePrograms, listPrograms, numberPrograms, sortPrograms, textPrograms, {awk, date, jqProgram, sed, sleep},
}

// All returns the table, sorted by name.
func All() []Program {
	all := slices.Concat(families...)
	slices.SortFunc(all, func(a, b Program) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Find returns the program of that exact name.
func Find(name string) (Program, bool) {
	for _, family := range families {
		for i := range family {
			if family[i].Name == name {
				return family[i], true
			}
		}
	}
	return Program{}, false
}

// Words in the tools' own version texts.
const (
	coreutils = "GNU coreutils"
	utilLinux = "util-linux"
)

// common are the options that every program has.
var common = []option{
	flag(0, "version"),
	deny(0, "help", nothing, "usage texts describe options that are not offered here", "list_available_shell_commands describes the command"),
}
