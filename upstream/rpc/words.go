package rpc

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"
)

// requestLine is what net/http and net/url put before an error: the method and the whole address.
var requestLine = regexp.MustCompile(`\b(?:[A-Z][a-z]+|parse) "[^"\s]*://(?:[^"\\]|\\.)*": `)

// WithoutRequest strips the method and the address that net/http puts before errors.
func WithoutRequest(text string) string { return requestLine.ReplaceAllString(text, "") }

// errorCode matches a code that adds something to a message.
var errorCode = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// Words finds the message in the JSON of an error: {"error": "…"}, {"message": "…"}, {"error": {"message": "…"}}.
// It is empty if the text is anything else.
func Words(text []byte) string {
	type object struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Code    json.RawMessage `json:"code"`
	}
	var o object
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '{' || json.Unmarshal(text, &o) != nil {
		return ""
	}
	if len(o.Error) > 0 && o.Error[0] == '{' {
		return Words(o.Error)
	}
	words := Text(o.Error)
	switch message := Text(o.Message); {
	case words == "":
		words = message
	case message != "" && message != words:
		words += ": " + message
	}
	if code := Text(o.Code); words != "" && errorCode.MatchString(code) && !strings.Contains(words, code) {
		words += " (" + code + ")"
	}
	return words
}

// Text is a JSON string as text, and empty for anything else.
func Text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // anything but a string is no message
	return s
}

// Shorten cuts text to n bytes, at a character.
func Shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
