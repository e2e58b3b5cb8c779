package rpc

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Hidden replaces secrets in messages.
const Hidden = "***"

const (
	// MaxHidden bounds the text that is searched for secrets, in bytes. The rest is cut: messages are much shorter.
	MaxHidden = 256 << 10
	// hiddenMargin is cut from the end of a text that was cut there, maybe within a secret.
	hiddenMargin = 64 << 10

	layers        = 4 // of escapes that are decoded, such as a repr within JSON
	minEncoded    = 8 // characters of base64 and hex: shorter ones appear by chance
	minCaseFolded = 8 // bytes of a word that is also found with line breaks in it, or in other letter case
)

// A Hider hides secret words in every form in which servers and libraries repeat them: with percent signs and escapes of
// JSON, Go, Python, JavaScript and C, also nested, broken over lines, as hex, and as base64 alone or as a part of
// something longer such as user:password. Memory is linear in the text, and time in the text and the number of words: the
// longest text takes less than a second with 300 words. Its methods may be called concurrently.
type Hider struct{ words []string }

// NewHider makes a Hider.
func NewHider(words []string) *Hider {
	h := &Hider{}
	for _, word := range words {
		h.words = append(h.words, forms(word)...)
	}
	slices.Sort(h.words)
	h.words = slices.Compact(h.words)
	return h
}

// Hide hides the words in a text. A text longer than [MaxHidden] is cut.
func (h *Hider) Hide(text string) string {
	if len(h.words) == 0 {
		return text
	}
	return Bounded(text, h.hide)
}

// Bounded applies hide to at most [MaxHidden] bytes of a text.
func Bounded(text string, hide func(string) string) string {
	if len(text) <= MaxHidden {
		return hide(text)
	}
	text = hide(text[:MaxHidden])
	return texts.Cut(text, len(text)-hiddenMargin)
}

func (h *Hider) hide(text string) string {
	var b strings.Builder
	at := int32(0)
	for _, f := range h.find(text) {
		b.WriteString(text[at:f.from] + Hidden)
		at = f.to
	}
	b.WriteString(text[at:])
	return b.String()
}

// find returns the parts of a text that are words in some form, in order and without overlaps. It searches the text as
// it is, and after the removal of each layer of escapes.
func (h *Hider) find(text string) (found []span) {
	l, more := firstLayer(text), true
	for i := 0; more && i <= layers; i++ {
		for _, word := range h.words {
			found = append(found, l.find(word)...)
		}
		l, more = l.decoded()
	}
	slices.SortFunc(found, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	all := found[:0]
	for _, f := range found {
		all = joined(all, f)
	}
	return all
}

// forms are the forms of a word that are searched: decoded up to each layer, with + for spaces, in other letter case, as
// hex and as base64.
func forms(word string) (list []string) {
	add := func(form string) {
		if form != "" && !slices.Contains(list, form) {
			list = append(list, form)
		}
	}
	add(word)
	if len(word) >= minCaseFolded {
		add(strings.ToUpper(word))
		add(strings.ToLower(word))
	}
	add(strings.ReplaceAll(word, " ", "+"))
	if code := hex.EncodeToString([]byte(word)); len(code) >= minEncoded {
		add(code)
		add(strings.ToUpper(code))
	}
	for _, code := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			if inner, end := base64Core(code, word, before); len(inner) >= minEncoded {
				add(end)
				add(inner)
			}
		}
	}
	for _, form := range slices.Clone(list) {
		l := firstLayer(form)
		for range layers {
			if l, _ = l.decoded(); len(strings.TrimSpace(l.text)) >= min(len(word), minDecoded) {
				add(l.text)
			}
		}
	}
	return list
}

// minDecoded is the least length of a decoded word, in bytes, unless the word itself is shorter.
const minDecoded = 4

// base64Core is the part of a base64 text that depends only on a word, which begins after a multiple of 3 bytes and as
// many as before: inner if more text follows, end if the text ends with the word.
func base64Core(code *base64.Encoding, word string, before int) (inner, end string) {
	text := code.EncodeToString([]byte(strings.Repeat("\x00", before) + word))
	first := (before*8 + 5) / 6
	last := max(first, (before+len(word))*8/6)
	return text[first:last], text[first:]
}
