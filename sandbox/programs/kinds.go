package programs

import "slices"

// optionNames are names of options as [parsed.has] takes them.
type optionNames []string

// only reports whether no option was given but these. Nil allows none.
func (o optionNames) only(p *parsed) bool {
	return o != nil && !slices.ContainsFunc(p.words, func(w word) bool {
		return w.opt != nil && !slices.ContainsFunc(o, w.is)
	})
}

// The options with which programs pick or order whole lines.
var (
	keepsSorted = optionNames{
		"ignore-leading-blanks", "dictionary-order", "ignore-case", "general-numeric-sort", "ignore-nonprinting", "month-sort",
		"human-numeric-sort", "numeric-sort", "random-sort", "reverse", "version-sort", "merge", "stable", "unique", "key", "field-separator", "sort",
	}
	keepsDistinct = optionNames{"repeated", "unique", "ignore-case", "skip-fields", "skip-chars", "check-chars"}
	keepsEnd      = optionNames{"lines", "quiet"}
	keepsShuffled = optionNames{"repeat", "head-count"}
	keepsMatching = optionNames{
		"extended-regexp", "fixed-strings", "basic-regexp", "perl-regexp", "regexp", "ignore-case", "no-ignore-case", "invert-match", "word-regexp",
		"line-regexp", "max-count", "no-filename", "no-messages", "text", "line-buffered", "file",
		"no-fixed-strings", "pcre2", "smart-case", "case-sensitive", "no-line-number", "no-heading", "no-unicode", "hidden", "block-buffered", // of rg
	}
)

// plain reports whether no option was given.
func plain(p *parsed) bool { return optionNames{}.only(p) }

// countsLines reports whether wc counts lines and nothing else.
func countsLines(p *parsed) bool { return p.has("lines") && countsOne(p) }

// countsOne reports whether wc writes one number.
func countsOne(p *parsed) bool {
	return len(p.words) > 0 && !slices.ContainsFunc(p.words, func(w word) bool { return w.opt == nil || w.opt != p.words[0].opt })
}

func countsMatches(p *parsed) bool {
	return p.has("count") && p.named() == nil && !p.has("with-filename")
}

// jqWritesValues: without -r, -j and --raw-output0, which write strings as text.
func jqWritesValues(p *parsed) bool {
	return !p.has("raw-output") && !p.has("join-output") && !p.has("raw-output0") && !p.has("seq")
}
