package jq

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// nearSize is how many bytes are shown on either side of a mistake.
const nearSize = 32

// A SyntaxError says what is wrong with a JSON text, and where.
type SyntaxError struct {
	Msg          string
	Line, Column int    // counted from 1, the column in bytes
	Near         string // the text around the place
	text         bool   // the input does not look like JSON at all
}

func (e *SyntaxError) Error() string {
	s := fmt.Sprintf("%s at line %d, column %d", e.Msg, e.Line, e.Column)
	if e.Near != "" {
		s += ", near " + e.Near
	}
	if e.text {
		s += " (the input looks like text, not JSON: use -R to read lines as strings)"
	}
	return s
}

// ended returns why there is no more input: a reading error, or a mistake.
func (d *decoder) ended(msg string) error {
	if !isEOF(d.readErr) {
		d.failed = d.readErr
		return d.failed
	}
	return d.mistake(msg)
}

func (d *decoder) unexpected(c byte) error {
	err := d.mistake("unexpected " + d.character(c))
	err.text = d.lines == 1 && err.Column == 1 && (c == '<' || unicode.IsLetter(rune(c)))
	return err
}

func (d *decoder) expected(what string, c byte) error {
	return d.mistake("expected " + what + ", not " + d.character(c))
}

func (d *decoder) character(c byte) string {
	if c < utf8.RuneSelf {
		return strconv.QuoteRune(rune(c))
	}
	r, _ := utf8.DecodeRune(d.buf[d.pos:d.end])
	return strconv.QuoteRune(r)
}

// mistake makes an error about the byte at pos. Nothing is read after it.
func (d *decoder) mistake(msg string) *SyntaxError {
	err := &SyntaxError{
		Msg: msg, Line: d.lines, Column: int(d.base + int64(d.pos) - d.lineStart + 1), Near: near(d.buf[:d.end], d.pos),
	}
	d.failed = err
	return err
}

// near shows the text around a place.
func near[T string | []byte](text T, at int) string {
	shown := printable(string(text[max(0, at-nearSize):min(len(text), at+nearSize)]))
	if shown == "" {
		return ""
	}
	return "`" + shown + "`"
}

// maxShown is how many bytes of a text an error shows.
const maxShown = 60

// printable makes of a piece of the input something that can stand in a message of one line.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) || c == utf8.RuneError {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(s, ""))
}
