package rpc

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Hidden stands in a message for what was cut out of it.
const Hidden = "***"

// Hiding makes a replacer that hides words, in every form in which they come back, the longest first, so that none is
// cut in two.
func Hiding(words []string) *strings.Replacer {
	var all []string
	for _, word := range words {
		all = append(append(all, word), forms(word)...)
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(all))
	for _, word := range all {
		pairs = append(pairs, word, Hidden)
	}
	return strings.NewReplacer(pairs...)
}

// forms are how a word looks within an address, a string of JSON, quotes of Go, or base64: alone, and as a part of something longer
// such as user:password.
func forms(word string) (list []string) {
	add := func(form string) {
		if form != word && !slices.Contains(list, form) {
			list = append(list, form)
		}
	}
	for _, form := range []string{url.QueryEscape(word), url.PathEscape(word)} {
		add(form)
		add(escapes.ReplaceAllStringFunc(form, strings.ToLower))
	}
	if text, err := json.Marshal(word); err == nil { // with < as \u003c
		add(string(text[1 : len(text)-1]))
	}
	add(jsonEscapes.Replace(word))
	quoted := strconv.Quote(word)
	add(quoted[1 : len(quoted)-1])
	for _, code := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			inner, end := within64(code, word, before)
			if len(inner) >= least64 {
				add(end)
				add(inner)
			}
		}
	}
	return list
}

var (
	escapes     = regexp.MustCompile(`%[0-9A-F]{2}`)
	jsonEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "/", `\/`)
)

// least64 is how much of base64 is hidden: less would be found in texts that have nothing to do with it.
const least64 = 8

// within64 is the part of a base64 text that is made of nothing but a word, which stands in it behind so many bytes and
// a multiple of 3: where more follows, and where the text ends with the word.
func within64(code *base64.Encoding, word string, before int) (inner, end string) {
	text := code.EncodeToString([]byte(strings.Repeat("\x00", before) + word))
	first := (before*8 + 5) / 6
	last := max(first, (before+len(word))*8/6)
	return text[first:last], text[first:]
}
