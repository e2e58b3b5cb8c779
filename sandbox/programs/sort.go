package programs

import (
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/stages"
)

const (
	ordering  = `[bdfgiMhnRrV]*`
	keyBegin  = `[1-9][0-9]{0,11}(\.[1-9][0-9]{0,11})?` + ordering
	keyEnd    = `[1-9][0-9]{0,11}(\.[0-9]{1,12})?` + ordering
	sortBytes = "use awk to turn the separator into a tab first, then sort with a tab"
)

var sortPrograms = []Program{
	{
		Name: "sort", Summary: "sort lines",
		Example: []string{"-t", ",", "-k2,2nr"},
		Bin:     "sort", Package: "coreutils", Mark: coreutils, Scratch: true, Locale: true, Asks: true,
		inject:  []string{"--parallel=1", "--buffer-size=64M"},
		arrange: stdinOnly,
		tries:   func(p *parsed) bool { return several(p) || p.has("key") },
		varies:  sortsRandomly, keeps: keepsSorted,
		blocks: func(p *parsed) bool { return !p.has("merge") },
		options: []option{
			flag('b', "ignore-leading-blanks"), flag('d', "dictionary-order"), flag('f', "ignore-case"),
			flag('g', "general-numeric-sort"), flag('i', "ignore-nonprinting"), flag('M', "month-sort"),
			flag('h', "human-numeric-sort"), flag('n', "numeric-sort"), flag('R', "random-sort"), flag('r', "reverse"),
			flag('V', "version-sort"), flag('c', ""), flag('C', ""), flag('m', "merge"), flag('s', "stable"),
			flag('u', "unique"), flag('z', "zero-terminated"),
			value('k', "key", like(keyBegin+`(,`+keyEnd+`)?`, "write a key such as 2,2 or 2,2nr")),
			value('t', "field-separator", sortSeparator),
			value(0, "sort", oneOf("general-numeric", "human-numeric", "month", "numeric", "random", "version")),
			optional(0, "check", oneOf("diagnose-first", "quiet", "silent")),
			skip('S', "buffer-size", one), skip(0, "parallel", one), skip(0, "batch-size", one),
			deny('T', "temporary-directory", one, "the sandbox gives sort a directory of its own", useNothing),
			deny('o', "output", one, writesFile, useStdout),
			deny(0, "compress-program", one, runsProgram, useNothing),
			deny(0, "files0-from", one, readsFile, useStdin),
			deny(0, "random-source", one, readsFile, useNothing),
			deny(0, "debug", nothing, "it would underline keys in the output", useNothing),
		},
	},
	{
		Name: "uniq", Summary: "leave out or count repeated neighbouring lines",
		Example: []string{"-c"}, Notes: "Sort first: only neighbouring lines are compared.",
		Bin: "uniq", Package: "coreutils", Mark: coreutils, Locale: true,
		number: "skip-fields", oneFile: true, arrange: stdinOnly, tries: several, keeps: keepsDistinct,
		options: []option{
			flag('c', "count"), flag('d', "repeated"), flag('D', ""), flag('u', "unique"), flag('i', "ignore-case"),
			value('f', "skip-fields", count), value('s', "skip-chars", count), value('w', "check-chars", count),
			flag('z', "zero-terminated"),
			optional(0, "all-repeated", oneOf("none", "prepend", "separate")),
			optional(0, "group", oneOf("separate", "prepend", "append", "both")),
		},
	},
	{
		Name: "shuf", Summary: "shuffle lines, or take a random sample of them",
		Example: []string{"-n", "10"},
		Bin:     "shuf", Package: "coreutils", Mark: coreutils, Locale: true,
		arrange: shufOperands, oneFile: true, tries: givenAny("input-range"),
		varies: always, blocks: always, keeps: keepsShuffled,
		options: []option{
			flag('e', "echo"), flag('r', "repeat"), flag('z', "zero-terminated"), value('n', "head-count", count),
			value('i', "input-range", like(`[0-9]{1,18}-[0-9]{1,18}`, "write a range such as 1-100")),
			deny('o', "output", one, writesFile, useStdout),
			deny(0, "random-source", one, readsFile, useNothing),
		},
	},
	{
		Name: "tsort", Summary: "order names topologically, from pairs \"before after\"",
		Bin: "tsort", Package: "coreutils", Mark: coreutils, Locale: true,
		arrange: stdinOnly, oneFile: true,
	},
	{
		Name: "join", Summary: "join the lines of two inputs on a field",
		Example: []string{"-", "@b"},
		Notes:   "join - @b, with \"inputs\": {\"b\": [stages]}. Both must be sorted on the field by sort (sort -t, -k1,1).",
		Bin:     "join", Package: "coreutils", Mark: coreutils, Locale: true,
		arrange: twoInputs, atInput: `["-", "@%s"]`,
		options: []option{
			value('a', "", oneOf("1", "2")), value('v', "", oneOf("1", "2")), value('e', "", nil),
			flag('i', "ignore-case"), value('j', "", number(1, maxCount)),
			value('1', "", number(1, maxCount)), value('2', "", number(1, maxCount)),
			value('o', "", like(`auto|(0|[12]\.[1-9][0-9]{0,11})([, \t](0|[12]\.[1-9][0-9]{0,11}))*`, "write a list such as 0,1.2,2.3, or auto")),
			value('t', "", sortSeparator), flag('z', "zero-terminated"),
			flag(0, "check-order"), flag(0, "nocheck-order"), flag(0, "header"),
		},
	},
	{
		Name: "comm", Summary: "compare two sorted inputs line by line",
		Example: []string{"-", "@b"},
		Notes:   "comm - @b, with \"inputs\": {\"b\": [stages]}. Lines of the one, of the other and of both stand in three columns; -12 leaves those of both.",
		Bin:     "comm", Package: "coreutils", Mark: coreutils, Locale: true,
		arrange: twoInputs, atInput: `["-", "@%s"]`,
		options: []option{
			flag('1', ""), flag('2', ""), flag('3', ""), flag(0, "check-order"), flag(0, "nocheck-order"),
			value(0, "output-delimiter", nil), flag(0, "total"), flag('z', "zero-terminated"),
		},
	},
}

func sortsRandomly(p *parsed) bool {
	return p.has("random-sort") || slices.Contains(p.values("sort"), "random") ||
		slices.ContainsFunc(p.values("key"), func(key string) bool { return strings.Contains(key, "R") })
}

func sortSeparator(v string) *problem {
	if v == `\0` {
		return nil
	}
	return oneByte(sortBytes)(v)
}

func shufOperands(p *parsed, inv *Invocation) *stages.Error {
	if p.has("repeat") && !p.has("head-count") {
		return refuse(-1, "add -n COUNT", "%s: -r without -n never ends", p.Name)
	}
	if p.has("echo") {
		return nil // the operands are the lines
	}
	return stdinOnly(p, inv)
}
