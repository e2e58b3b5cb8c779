package stages

import (
	"encoding/json"
	"errors"
	"slices"
)

// member is one key of a JSON object with its value as it was written: numbers keep every digit.
type member struct {
	key   string
	value json.RawMessage
}

var errNotObject = errors.New("not one JSON object")

// parseObject returns the members of data, which must be exactly one JSON object, in their order.
func parseObject(data []byte) ([]member, error) {
	if rest := trimBlank(data); len(rest) == 0 || rest[0] != '{' || !json.Valid(data) {
		return nil, errNotObject
	}
	list := []member{}
	for key, value := range members(trimBlank(data)) {
		list = append(list, member{key, value})
	}
	return list, nil
}

// nextValue splits valid JSON behind the value that it begins with.
func nextValue(data []byte) (value, rest []byte) {
	var scan valueScanner
	n, _ := scan.scan(data)
	return data[:n:n], data[n:]
}

// object is a JSON object that is put together: a later value of a key replaces the earlier one, in its place.
type object struct {
	members []member
	at      map[string]int // index in members, once there are many
}

// manyMembers is how many members of an object are looked through one by one.
const manyMembers = 16

func (o *object) set(key string, value json.RawMessage) {
	if i := o.index(key); i >= 0 {
		o.members[i].value = value
		return
	}
	if o.at != nil {
		o.at[key] = len(o.members)
	}
	o.members = append(o.members, member{key, value})
	if o.at == nil && len(o.members) > manyMembers {
		o.at = map[string]int{}
		for i, m := range o.members {
			o.at[m.key] = i
		}
	}
}

// index returns where the member of a key is, or -1.
func (o *object) index(key string) int {
	if o.at == nil {
		return slices.IndexFunc(o.members, func(m member) bool { return m.key == key })
	}
	if i, ok := o.at[key]; ok {
		return i
	}
	return -1
}

// encodeObject writes members as a JSON object, values as they are.
func encodeObject(members []member) json.RawMessage {
	n := 2
	for _, m := range members {
		n += len(m.key) + len(m.value) + len(`"":,`)
	}
	b := append(make([]byte, 0, n), '{')
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, []byte(m.key))
		b = append(b, ':')
		b = append(b, m.value...)
	}
	return append(b, '}')
}

// appendString appends text as a JSON string. Bytes that are not UTF-8 stay as they are, so that they pass between
// stages untouched (pipeline.md §2); only what JSON demands is escaped.
func appendString(b, text []byte) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\t':
			b = append(b, '\\', 't')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
