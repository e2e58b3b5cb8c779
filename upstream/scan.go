package upstream

import (
	"bytes"
	"encoding/json"
	"regexp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// envelope holds the members of a JSON-RPC message undecoded. They share memory with the message.
type envelope struct {
	id, method, result, err json.RawMessage
}

// scanEnvelope finds the top-level members of a JSON-RPC object in one pass. It does not look into their values, so a
// value may still be invalid JSON; whoever decodes it finds out.
func scanEnvelope(b []byte) (e envelope, ok bool) {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return e, false
	}
	for i = skipSpace(b, i+1); i < len(b) && b[i] != '}'; {
		key := i
		if i = skipValue(b, i); i < 0 || b[key] != '"' {
			return e, false
		}
		name := b[key+1 : i-1]
		if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
			return e, false
		}
		value := skipSpace(b, i+1)
		if i = skipValue(b, value); i <= value {
			return e, false
		}
		e.set(string(name), b[value:i:i])
		if i = skipSpace(b, i); i < len(b) && b[i] == ',' {
			i = skipSpace(b, i+1)
		} else if i >= len(b) || b[i] != '}' {
			return e, false
		}
	}
	return e, i < len(b) && skipSpace(b, i+1) == len(b)
}

func (e *envelope) set(name string, value json.RawMessage) {
	switch name {
	case "id":
		e.id = value
	case "method":
		e.method = value
	case "result":
		e.result = value
	case "error":
		e.err = value
	}
}

// isResult reports whether the message is a response that carries a result.
func (e *envelope) isResult() bool {
	return e.id != nil && e.result != nil && e.method == nil && e.err == nil
}

// decodeMessage decodes a JSON-RPC message. The result of a response, which may be many megabytes, is not looked into
// and shares memory with b; everything else is small and goes through the SDK.
func decodeMessage(b []byte) (jsonrpc.Message, error) {
	e, ok := scanEnvelope(b)
	if !ok || !e.isResult() {
		return jsonrpc.DecodeMessage(b)
	}
	id, err := decodeID(e.id)
	if err != nil {
		return nil, err
	}
	return &jsonrpc.Response{ID: id, Result: e.result}, nil
}

func decodeID(raw json.RawMessage) (jsonrpc.ID, error) {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return jsonrpc.ID{}, err
	}
	return jsonrpc.MakeID(v)
}

// lastID matches an id among the last members of a message. The single closing brace at the very end belongs to the
// message itself, and within a string the quotes would be escaped: in valid JSON the match cannot be inside of a value.
var lastID = regexp.MustCompile(`"id"\s*:\s*(-?[0-9]+|"[^"\\]*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)

// edgeID finds the id of a message of which only the first and the last bytes are at hand.
func edgeID(head, tail []byte) (jsonrpc.ID, bool) {
	if e, _ := scanEnvelope(head); e.id != nil { // incomplete, but members before the long one were read
		if id, err := decodeID(e.id); err == nil {
			return id, true
		}
	}
	if m := lastID.FindSubmatch(tail); m != nil {
		if id, err := decodeID(m[1]); err == nil {
			return id, true
		}
	}
	return jsonrpc.ID{}, false
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

// skipString returns the index after the string that starts at i, or -1 if it does not end.
func skipString(b []byte, i int) int {
	for start := i + 1; ; {
		j := bytes.IndexByte(b[start:], '"')
		if j < 0 {
			return -1
		}
		end := start + j
		slashes := 0
		for k := end - 1; k > i && b[k] == '\\'; k-- {
			slashes++
		}
		if slashes%2 == 0 {
			return end + 1
		}
		start = end + 1
	}
}
