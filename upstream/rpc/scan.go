package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// An Envelope holds the members of a JSON-RPC message undecoded. They share memory with the message.
type Envelope struct {
	ID, Method, Result, Err json.RawMessage
}

// Scan finds the top-level members of a JSON-RPC object in one pass. It does not look into their values, so a
// value may still be invalid JSON; whoever decodes it finds out.
func Scan(b []byte) (e Envelope, ok bool) {
	ok = Members(b, func(name, value []byte) {
		switch string(name) {
		case "id":
			e.ID = value
		case "method":
			e.Method = value
		case "result":
			e.Result = value
		case "error":
			e.Err = value
		}
	})
	return e, ok
}

// Members finds the members of a JSON object in one pass, and reports whether it came to the object's end. Names are
// as they are written, without quotes; names and values share memory with b. What a value holds is not looked into, so
// it may still be invalid JSON.
func Members(b []byte, found func(name, value []byte)) bool {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return false
	}
	for i = skipSpace(b, i+1); i < len(b) && b[i] != '}'; {
		key := i
		if i = skipValue(b, i); i < 0 || b[key] != '"' {
			return false
		}
		name := b[key+1 : i-1]
		if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
			return false
		}
		value := skipSpace(b, i+1)
		if i = skipValue(b, value); i <= value {
			return false
		}
		found(name, b[value:i:i])
		if i = skipSpace(b, i); i < len(b) && b[i] == ',' {
			i = skipSpace(b, i+1)
		} else if i >= len(b) || b[i] != '}' {
			return false
		}
	}
	return i < len(b) && skipSpace(b, i+1) == len(b)
}

// Elements finds the elements of a JSON array in one pass, as Members does with an object.
func Elements(b []byte, found func(value []byte)) bool {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '[' {
		return false
	}
	for i = skipSpace(b, i+1); i < len(b) && b[i] != ']'; {
		start := i
		if i = skipValue(b, i); i <= start {
			return false
		}
		found(b[start:i:i])
		if i = skipSpace(b, i); i < len(b) && b[i] == ',' {
			i = skipSpace(b, i+1)
		} else if i >= len(b) || b[i] != ']' {
			return false
		}
	}
	return i < len(b) && skipSpace(b, i+1) == len(b)
}

// IsAnswer reports whether the message answers a request, be it with nothing: no other answer will come.
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

// Answer returns the result of a message that is an answer, or the error in it.
func (e *Envelope) Answer() (json.RawMessage, error) {
	if e.Err == nil || string(e.Err) == "null" {
		if e.Result == nil {
			return nil, fmt.Errorf("%w: it has neither a result nor an error", ErrBroken)
		}
		return e.Result, nil
	}
	wire := new(jsonrpc.Error)
	if err := json.Unmarshal(e.Err, wire); err != nil {
		return nil, fmt.Errorf("%w: its error is %.200q", ErrBroken, e.Err)
	}
	return nil, wire
}

// flaw says what is wrong with an answer, which the SDK has failed to decode or has not.
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

// lastID matches an id among the last members of a message. The single closing brace at the very end belongs to the
// message itself, and within a string the quotes would be escaped: in valid JSON the match cannot be inside of a value.
var lastID = regexp.MustCompile(`"id"\s*:\s*(-?[0-9]+|"[^"\\]*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)

// EdgeID finds the id of a message of which only the first and the last bytes are at hand.
func EdgeID(head, tail []byte) (id string, ok bool) {
	if e, _ := Scan(head); e.ID != nil { // incomplete, but members before the long one were read
		return string(e.ID), true
	}
	if m := lastID.FindSubmatch(tail); m != nil {
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
				return i // the value was a scalar, and this closes what it is in
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
