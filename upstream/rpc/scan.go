package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// An Envelope holds the members of a JSON-RPC message undecoded. They share memory with the message.
type Envelope struct {
	ID, Method, Params, Result, Err json.RawMessage
}

// Scan finds the top-level members of a JSON-RPC object in one pass. It does not check their values, which may still be
// invalid JSON.
func Scan(b []byte) (e Envelope, ok bool) {
	ok = Members(b, func(name, value []byte) {
		switch string(name) {
		case "id":
			e.ID = value
		case "method":
			e.Method = value
		case "params":
			e.Params = value
		case "result":
			e.Result = value
		case "error":
			e.Err = value
		}
	})
	return e, ok
}

// Members finds the members of a JSON object in one pass, and reports whether it reached the object's end. Names are as
// written, without quotes; names and values share memory with b. Values are not checked and may still be invalid JSON.
func Members(b []byte, found func(name, value []byte)) bool { return walk(b, '{', '}', found) }

// Name is the name of a member that [Members] has found, without escapes.
func Name(written []byte) string {
	if bytes.IndexByte(written, '\\') < 0 {
		return string(written)
	}
	return Text(slices.Concat([]byte{'"'}, written, []byte{'"'}))
}

// IsNull reports whether a value is absent or null.
func IsNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// Elements finds the elements of a JSON array in one pass, like Members.
func Elements(b []byte, found func(value []byte)) bool {
	return walk(b, '[', ']', func(_, value []byte) { found(value) })
}

func walk(b []byte, begin, end byte, found func(name, value []byte)) bool {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != begin {
		return false
	}
	for i = skipSpace(b, i+1); i < len(b) && b[i] != end; {
		var name []byte
		if begin == '{' {
			key := i
			if i = skipValue(b, i); i < 0 || b[key] != '"' {
				return false
			}
			name = b[key+1 : i-1]
			if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
				return false
			}
			i = skipSpace(b, i+1)
		}
		value := i
		if i = skipValue(b, value); i <= value {
			return false
		}
		found(name, b[value:i:i])
		if i = skipSpace(b, i); i < len(b) && b[i] == ',' {
			i = skipSpace(b, i+1)
		} else if i >= len(b) || b[i] != end {
			return false
		}
	}
	return i < len(b) && skipSpace(b, i+1) == len(b)
}

// IsAnswer reports whether the message answers a request, even without a result: no other answer will come.
func (e *Envelope) IsAnswer() bool {
	return e.Answers() || e.ID != nil && e.Method == nil && string(e.ID) != "null"
}

// Answers reports whether the message answers a request with a result or an error.
func (e *Envelope) Answers() bool {
	return e.ID != nil && e.Method == nil && (e.Result != nil || e.Err != nil)
}

// number returns the id, if it is a whole number.
func (e *Envelope) number() (int64, bool) {
	n, err := strconv.ParseInt(string(e.ID), 10, 64)
	return n, err == nil
}

// maxError bounds the error in an answer, in bytes: it is copied and searched several times.
const maxError = 1 << 20

// Answer returns the result of an answer, or the error in it.
func (e *Envelope) Answer() (json.RawMessage, error) {
	if e.Err == nil || string(e.Err) == "null" {
		if e.Result == nil {
			return nil, fmt.Errorf("%w: it has neither a result nor an error", ErrBroken)
		}
		return e.Result, nil
	}
	if len(e.Err) > maxError {
		return nil, fmt.Errorf("%w: its error has %d bytes, of at most %d", ErrBroken, len(e.Err), maxError)
	}
	wire := new(jsonrpc.Error)
	if err := json.Unmarshal(e.Err, wire); err != nil {
		return nil, fmt.Errorf("%w: its error is %.200q", ErrBroken, e.Err)
	}
	return nil, wire
}

// flaw says what is wrong with an answer, which the SDK may have failed to decode.
func (e *Envelope) flaw(undecoded error) error {
	result, err := e.Answer()
	switch {
	case errors.Is(err, ErrBroken):
		return err
	case undecoded != nil:
		return fmt.Errorf("%w: %w", ErrBroken, undecoded)
	case err == nil && (len(result) == 0 || result[0] != '{'):
		return fmt.Errorf("%w: its result is %.100q", ErrBroken, result)
	}
	return nil
}

// lastID matches an id among the last members of a message. The single closing brace at the end belongs to the message,
// and within a string the quotes would be escaped: in valid JSON the match cannot be inside a value.
var lastID = lazy.Regexp(`"id"\s*:\s*(-?[0-9]+|"[^"\\]*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)

// EdgeID finds the id of a message of which only the first and the last bytes are known.
func EdgeID(head, tail []byte) (id string, ok bool) {
	if e, _ := Scan(head); e.ID != nil { // the members before the long one were read
		return string(e.ID), true
	}
	if m := lastID().FindSubmatch(tail); m != nil {
		return string(m[1]), true
	}
	return "", false
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index after the string that starts at i, or -1 if it does not end.
func skipString(b []byte, i int) int {
	for begin := i + 1; ; {
		n := bytes.IndexByte(b[begin:], '"')
		if n < 0 {
			return -1
		}
		quote, slashes := begin+n, 0
		for slashes < n && b[quote-1-slashes] == '\\' {
			slashes++
		}
		if begin = quote + 1; slashes%2 == 0 {
			return begin
		}
	}
}

// skipValue returns the index after the JSON value that starts at i, or -1 if it does not end.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = skipString(b, i); i < 0 {
				return -1
			}
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // the value was a scalar
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	if depth > 0 {
		return -1
	}
	return i
}
