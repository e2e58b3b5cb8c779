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

// A Member is one member of an object.
type Member struct {
	Name  string
	Value json.RawMessage
}

// List returns the members of an object in their order, repeated ones too. The error is [ErrNoObject] or that of data that
// is not JSON.
func List(data []byte) ([]Member, error) {
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if begin, _ := decoder.Token(); begin != json.Delim('{') {
		return nil, ErrNoObject
	}
	var list []Member
	for decoder.More() {
		name, _ := decoder.Token() // the data is valid
		m := Member{Name: name.(string)}
		if err := decoder.Decode(&m.Value); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// Members returns the members of an object; of two with the same name the last. The error is [ErrNoObject], or names a
// repeated member, or one that differs from a known name only by Unicode case folding: then the members are returned too.
// Nested objects are not checked. The time is linear in the data.
func Members(data []byte, names Names) (members map[string]json.RawMessage, err error) {
	list, broken := List(data)
	if broken != nil {
		return nil, ErrNoObject
	}
	members = map[string]json.RawMessage{}
	for _, m := range list {
		if err == nil {
			err = names.check(m.Name, members[m.Name] != nil)
		}
		members[m.Name] = m.Value
	}
	return members, err
}

// check returns an error for a name that other readers could read differently; again means that it is repeated.
func (n Names) check(name string, again bool) error {
	if again && (n.Unique || slices.Contains(n.Known, name)) {
		return fmt.Errorf("%.40q is given twice", name)
	}
	for _, known := range n.Known {
		if name != known && strings.EqualFold(name, known) {
			return fmt.Errorf("%.40q stands there, which reads as %q and is not", name, known)
		}
	}
	return nil
}
