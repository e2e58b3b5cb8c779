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

func byName(families ...[]Program) []Program {
	return slices.SortedFunc(slices.Values(slices.Concat(families...)), func(a, b Program) int { return strings.Compare(a.Name, b.Name) })
}

// What the tools' own version texts hold.
const (
	coreutils = "GNU coreutils"
	utilLinux = "util-linux"
)

// shared are the rows that every program has.
func shared(rows ...option) []option {
	return append(rows,
		flag(0, "version"),
		deny(0, "help", nothing, "usage texts describe options that are not offered here",
			"list_available_shell_commands describes the command"))
}
