package rpc

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// requestLine matches what net/http and net/url put before an error: the method and the whole address.
var requestLine = lazy.Regexp(`\b(?:[A-Z][a-z]+|parse) "[^"\s]*://(?:[^"\\]|\\.)*": `)

// WithoutRequest removes the method and the address that net/http puts before errors.
func WithoutRequest(text string) string { return requestLine().ReplaceAllString(text, "") }

// errorCode matches a code that adds something to a message.
var errorCode = lazy.Regexp(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// ErrorText finds the message in the JSON of an error: {"error": "…"}, {"message": "…"}, {"error": {"message": "…"}}. It
// is empty for anything else.
func ErrorText(text []byte) string { return words(text, maxWithin) }

// maxWithin is how deep errors may be nested: the text is read again for each level.
const maxWithin = 4

func words(text []byte, within int) string {
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
		if within == 0 {
			return ""
		}
		return words(o.Error, within-1)
	}
	said := Text(o.Error)
	switch message := Text(o.Message); {
	case said == "":
		said = message
	case message != "" && message != said:
		said += ": " + message
	}
	if code := Text(o.Code); said != "" && errorCode().MatchString(code) && !strings.Contains(said, code) {
		said += " (" + code + ")"
	}
	return said
}

// Text is the text of a JSON string, and empty for anything else.
func Text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // only a string is a message
	return s
}
