// Package exactjson reads the members of a JSON object by their exact names, and reports objects that other readers could
// read differently: encoding/json accepts "SUB" for "sub", and of two members with one name the last. It knows nothing of
// the meaning of members.
package exactjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNoObject is the error of data that is not one JSON object.
var ErrNoObject = errors.New("it is not a JSON object")

// Names are the names that matter to a caller.
type Names struct {
	Known  []string
	Unique bool // other names must not repeat either
}

// Members returns the members of an object; of two with the same name the last. The error is [ErrNoObject], or names a
// repeated member, or one that differs from a known name only by Unicode case folding: then the members are returned too.
// Nested objects are not checked. The time is linear in the data.
func Members(data []byte, names Names) (members map[string]json.RawMessage, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('{') {
		return nil, ErrNoObject
	}
	members = map[string]json.RawMessage{}
	for decoder.More() {
		var value json.RawMessage
		token, broken := decoder.Token()
		name, ok := token.(string)
		if broken != nil || !ok || decoder.Decode(&value) != nil {
			return nil, ErrNoObject
		}
		if err == nil {
			err = names.check(name, members[name] != nil)
		}
		members[name] = value
	}
	if _, broken := decoder.Token(); broken != nil || len(bytes.TrimSpace(data[decoder.InputOffset():])) > 0 {
		return nil, ErrNoObject
	}
	return members, err
}

// check returns an error for a name that other readers could read differently; again means that it is repeated.
func (n Names) check(name string, again bool) error {
	if again && (n.Unique || slices.Contains(n.Known, name)) {
		return fmt.Errorf("%.40q stands there twice", name)
	}
	for _, known := range n.Known {
		if name != known && strings.EqualFold(name, known) {
			return fmt.Errorf("%.40q stands there, which reads as %q and is not", name, known)
		}
	}
	return nil
}
