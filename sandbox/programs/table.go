package programs

// table is sorted by name. A new program is a row here and a file, or a place in its family's file, that says what it
// is. Programs whose purpose is to run others, to write files or to open connections (xargs, find, tee, split, env,
// timeout, dc, ed, tar, ...) have no place in it.
var table = []Program{
	awk,
	base64sum,
	bc,
	column,
	comm,
	cut,
	date,
	fd,
	fold,
	grep,
	head,
	join,
	jqProgram,
	ls,
	nl,
	numfmt,
	paste,
	rev,
	rg,
	sed,
	sha256sum,
	shuf,
	sleep,
	sort,
	tac,
	tail,
	tr,
	tsort,
	uniq,
	wc,
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
