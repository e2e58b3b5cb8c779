package programs

import (
	"slices"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

var sed = Program{
	Name: "sed", Summary: "edit lines by a script",
	Example: []string{"-E", `s/^([a-z]+): /\1 /`},
	Notes:   "The commands e, r, R, w and W, and the flags e and w of s, are not available.",
	Bin:     "sed", Package: "sed", Mark: "GNU sed", Locale: true,
	inject: []string{"--sandbox"}, byLine: "--unbuffered", script: "expression", tries: given,
	stops: quitsSed, maps: sedMaps,
	arrange: scriptFirst("script", `"args": ["s/old/new/g"]`),
	options: []option{
		value('e', "expression", nil), flag('n', "quiet"), alias(0, "silent", "quiet"),
		flag('E', "regexp-extended"), alias('r', "", "regexp-extended"),
		flag('z', "null-data"), alias(0, "zero-terminated", "null-data"),
		flag('u', "unbuffered"), value('l', "line-length", width), flag(0, "posix"),
		skip(0, "sandbox", nothing), skip('s', "separate", nothing), skip('b', "binary", nothing),
		deny('i', "in-place", maybe, writesFile, "leave -i out: the edited text goes to the next stage by itself"),
		deny('f', "file", one, readsFile, "give the script as an argument; it may have several lines"),
		deny(0, "follow-symlinks", nothing, walksFiles, useNothing),
		deny(0, "debug", nothing, "it would print the script between the lines", useNothing),
	},
}

// quitsSed reports whether the script may end before the input.
func quitsSed(p *parsed) bool {
	return slices.ContainsFunc(p.values("expression"), quits().MatchString)
}

// quits finds the commands q and Q where a command may stand: at the beginning, after an address, a brace or a ";".
var quits = lazy.Regexp(`(^|[0-9$/;{}\n!|I\s])[qQ]\s*[0-9]*\s*($|[;}\n#])`)
