package programs

import "slices"

var linePrograms = []Program{
	{
		Name: "head", Summary: "print the first lines (10) or bytes",
		Example: []string{"-n", "20"},
		Bin:     "head", Package: "coreutils", Mark: coreutils, Locale: true,
		number: "lines", arrange: stdinOnly,
		stops: headStops, part: partOf, keeps: keepsEnd,
		options: []option{
			value('c', "bytes", amount), value('n', "lines", amount), flag('z', "zero-terminated"),
			flag('q', "quiet"), alias(0, "silent", "quiet"), flag('v', "verbose"),
		},
	},
	{
		Name: "tail", Summary: "print the last lines (10) or bytes, or from a line on (-n +2)",
		Example: []string{"-n", "+2"},
		Bin:     "tail", Package: "coreutils", Mark: coreutils, Locale: true,
		number: "lines", plus: true, arrange: stdinOnly, part: partOf, keeps: keepsEnd,
		options: []option{
			value('c', "bytes", amount), value('n', "lines", amount), flag('z', "zero-terminated"),
			flag('q', "quiet"), alias(0, "silent", "quiet"), flag('v', "verbose"),
			deny('f', "follow", maybe, followsFile, useNothing), deny('F', "", nothing, followsFile, useNothing),
			deny(0, "retry", nothing, followsFile, useNothing), deny('s', "sleep-interval", one, followsFile, useNothing),
			deny(0, "max-unchanged-stats", one, followsFile, useNothing),
			deny(0, "pid", one, "it looks at other processes", useNothing),
		},
	},
	{
		Name: "tac", Summary: "print the lines in reverse order",
		Bin: "tac", Package: "coreutils", Mark: coreutils, Scratch: true, Locale: true,
		arrange: stdinOnly, tries: givenAny("regex"), blocks: always, keeps: optionNames{}, ends: plain,
		options: []option{flag('b', "before"), flag('r', "regex"), value('s', "separator", nil)},
	},
	{
		Name: "rev", Summary: "reverse the characters of every line",
		Bin: "rev", Package: "util-linux", Mark: utilLinux, Locale: true,
		arrange: stdinOnly, maps: always,
		options: []option{alias('V', "", "version")},
	},
	{
		Name: "nl", Summary: "number lines",
		Example: []string{"-ba"},
		Bin:     "nl", Package: "coreutils", Mark: coreutils, Locale: true,
		arrange: stdinOnly, tries: given,
		options: []option{
			value('b', "body-numbering", like(numbering, "use a, t, n or pREGEXP")),
			value('f', "footer-numbering", like(numbering, "use a, t, n or pREGEXP")),
			value('h', "header-numbering", like(numbering, "use a, t, n or pREGEXP")),
			value('d', "section-delimiter", atMost(8)), value('i', "line-increment", number(-maxCount, maxCount)),
			value('l', "join-blank-lines", number(1, maxCount)), value('n', "number-format", oneOf("ln", "rn", "rz")),
			flag('p', "no-renumber"), value('s', "number-separator", nil),
			value('v', "starting-line-number", number(-maxCount, maxCount)), value('w', "number-width", number(1, maxWidth)),
		},
	},
	{
		Name: "fold", Summary: "break long lines",
		Example: []string{"-s", "-w", "100"},
		Notes:   "Counts bytes, not characters.",
		Bin:     "fold", Package: "coreutils", Mark: coreutils, Locale: true,
		number: "width", arrange: stdinOnly,
		options: []option{flag('b', "bytes"), flag('s', "spaces"), value('w', "width", number(1, maxCount))},
	},
	{
		Name: "wc", Summary: "count lines, words and bytes",
		Example: []string{"-l"},
		Bin:     "wc", Package: "coreutils", Mark: coreutils, Locale: true,
		arrange: dashesOnly, blocks: always, givesValues: countsOne, ends: countsLines,
		options: []option{
			flag('c', "bytes"), flag('m', "chars"), flag('l', "lines"), flag('L', "max-line-length"), flag('w', "words"),
			deny(0, "files0-from", one, readsFile, useStdin),
		},
	},
}

// headStops: all but the last lines, -n -5, are known only at the end.
func headStops(p *parsed) bool {
	return !slices.ContainsFunc(append(p.values("lines"), p.values("bytes")...), func(v string) bool { return v[0] == '-' })
}

const numbering = `[atn]|p(?s:.*)`
