package programs

import (
	"slices"

	"github.com/mcsh-dev/mcsh/stages"
)

var grepPrograms = []Program{
	{
		Name: "grep", Summary: "print the lines that match a pattern",
		Example: []string{"-iE", "error|warn"},
		Notes:   "No match is success with empty output. -P has look-around.",
		Bin:     "grep", Package: "grep", Mark: "GNU grep", Locale: true, SuccessCodes: []int{1},
		// Without --text grep takes input with a byte that is not UTF-8 for binary: it leaves lines out, and
		// says so on standard error only.
		inject: []string{"--color=never", "--text"}, number: "context", byLine: "--line-buffered", script: "regexp", tries: given, atInput: `["-F", "-f", "@%s"]`,
		arrange: scriptFirst("pattern", `"args": ["-i", "error"]`),
		keeps:   keepsMatching, givesValues: countsMatches,
		stops: func(p *parsed) bool { return p.has("max-count") || p.has("quiet") || p.has("files-with-matches") },
		options: []option{
			flag('E', "extended-regexp"), flag('F', "fixed-strings"), flag('G', "basic-regexp"), flag('P', "perl-regexp"),
			value('e', "regexp", nil), flag('i', "ignore-case"), alias('y', "", "ignore-case"), flag(0, "no-ignore-case"),
			flag('v', "invert-match"), flag('w', "word-regexp"), flag('x', "line-regexp"),
			flag('c', "count"), flag('o', "only-matching"), flag('n', "line-number"), flag('b', "byte-offset"),
			flag('l', "files-with-matches"), flag('L', "files-without-match"),
			flag('q', "quiet"), alias(0, "silent", "quiet"), flag('s', "no-messages"),
			value('m', "max-count", number(-1, maxCount)),
			value('A', "after-context", count), value('B', "before-context", count), value('C', "context", count),
			value(0, "group-separator", nil), flag(0, "no-group-separator"),
			flag('H', "with-filename"), flag('h', "no-filename"), value(0, "label", nil),
			flag('T', "initial-tab"), flag('Z', "null"), flag('z', "null-data"), flag('U', "binary"), skip('a', "text", nothing),
			{long: "binary-files", takes: one, check: oneOf("text", "binary", "without-match"), fate: ignored},
			flag(0, "line-buffered"),
			alias('V', "", "version"),
			skip(0, "color", maybe), skip(0, "colour", maybe),
			reads('f', "file", one, `give every pattern with -e, or use -E 'one|two'; for many, "inputs": {"words": [stages]} and -f @words`),
			deny('r', "recursive", nothing, walksFiles, useNothing),
			deny('R', "dereference-recursive", nothing, walksFiles, useNothing),
			deny('d', "directories", one, walksFiles, useNothing), deny('D', "devices", one, walksFiles, useNothing),
			deny(0, "include", one, walksFiles, useNothing), deny(0, "exclude", one, walksFiles, useNothing),
			deny(0, "exclude-from", one, readsFile, useNothing), deny(0, "exclude-dir", one, walksFiles, useNothing),
		},
	},
	{
		Name: "rg", Summary: "print the lines that match a pattern, with Rust's regular expressions",
		Example: []string{"-o", "-r", "$1", `"id": (\d+)`},
		Notes:   "Searches its input, or files and directories of a workspace that are named; not what is hidden in them, without --hidden. No match is success with empty output. UTF-16 needs -E utf-16.",
		Bin:     "rg", Package: "ripgrep", Mark: "ripgrep", Asks: true, Walks: true, SuccessCodes: []int{1},
		// Data is bytes: with --text none is taken for a binary file, and without an encoding rg drops no byte
		// order mark and decodes nothing that looks like UTF-16.
		inject: []string{"--no-config", "--no-ignore", "--color=never", "--threads=1", "--text", "--encoding=none"}, exact: true, equals: true, byLine: "--line-buffered",
		script: "regexp", tries: given,
		arrange: searchStdin,
		keeps:   keepsMatching, givesValues: countsMatches,
		stops: func(p *parsed) bool { return p.has("max-count") || p.has("quiet") || p.has("files-with-matches") },
		options: []option{
			value('e', "regexp", nil), flag('F', "fixed-strings"), flag(0, "no-fixed-strings"), flag('P', "pcre2"),
			flag('i', "ignore-case"), flag('S', "smart-case"), flag('s', "case-sensitive"),
			flag('v', "invert-match"), flag('w', "word-regexp"), flag('x', "line-regexp"),
			flag('c', "count"), flag(0, "count-matches"), flag(0, "include-zero"), flag('l', "files-with-matches"),
			flag('o', "only-matching"), value('r', "replace", nil), flag(0, "passthru"), alias(0, "passthrough", "passthru"),
			flag('n', "line-number"), flag('N', "no-line-number"), flag('b', "byte-offset"), flag(0, "column"), flag(0, "trim"),
			flag('q', "quiet"), value('m', "max-count", count),
			value('A', "after-context", count), value('B', "before-context", count), value('C', "context", count),
			value(0, "context-separator", nil), flag(0, "no-context-separator"),
			value('M', "max-columns", count), flag(0, "max-columns-preview"),
			flag('U', "multiline"), flag(0, "multiline-dotall"), flag(0, "crlf"), flag(0, "null-data"), flag('0', "null"),
			skip('a', "text", nothing), flag(0, "json"), flag(0, "vimgrep"), flag(0, "stats"), flag(0, "no-unicode"),
			flag('H', "with-filename"), flag('I', "no-filename"), flag(0, "heading"), flag(0, "no-heading"),
			value('E', "encoding", like(`[A-Za-z0-9_:.-]{1,40}`, "give the name of an encoding, such as utf-16")),
			flag(0, "line-buffered"), flag(0, "block-buffered"), alias('V', "", "version"),
			skip(0, "no-config", nothing), skip(0, "no-ignore", nothing), skip(0, "color", one), skip(0, "colors", one),
			skip('j', "threads", one), skip(0, "no-messages", nothing), alias('p', "pretty", "line-number"),
			flag(0, "hidden"), alias('.', "", "hidden"), skip(0, "sort", one), skip(0, "sortr", one),
			deny(0, "pre", one, runsProgram, useNothing), deny(0, "pre-glob", one, runsProgram, useNothing),
			deny(0, "hostname-bin", one, runsProgram, useNothing),
			deny(0, "hyperlink-format", one, "it asks for the name of the machine", useNothing),
			deny('z', "search-zip", nothing, runsProgram, useNothing),
			deny('f', "file", one, readsFile, "give every pattern with -e"),
			deny(0, "ignore-file", one, readsFile, useNothing), deny(0, "files", nothing, walksFiles, useNothing),
			deny(0, "type-list", nothing, walksFiles, useNothing),
			deny('g', "glob", one, walksFiles, useNothing), deny(0, "iglob", one, walksFiles, useNothing),
			deny('t', "type", one, walksFiles, useNothing), deny('T', "type-not", one, walksFiles, useNothing),
			deny('L', "follow", nothing, walksFiles, useNothing), deny('u', "unrestricted", nothing, walksFiles, useNothing),
			deny('d', "max-depth", one, walksFiles, useNothing), deny('h', "", nothing, "it is the usage text", "use -I to leave file names out"),
		},
	},
}

// searchStdin adds the operand without which rg would search the directory that it runs in.
func searchStdin(p *parsed, inv *Invocation) *stages.Error {
	if err := scriptFirst("pattern", `"args": ["-i", "error"]`)(p, inv); err != nil {
		return err
	}
	p.words = slices.DeleteFunc(p.words, func(w word) bool { return w.is("encoding") && w.value == "none" }) // it is injected
	switch {
	case p.named() != nil:
	case p.given.Files && p.given.Searches:
		p.words = append(p.words, word{value: ".", file: true})
	default:
		p.words = append(p.words, word{value: "-"})
		return nil
	}
	p.words = append(p.words,
		word{opt: p.long("sort"), value: "path", has: true}, // the order of a directory is none
	)
	for _, name := range private { // the last globs count
		p.words = append(p.words, word{opt: p.long("iglob"), value: "!" + name, has: true})
	}
	return nil
}
