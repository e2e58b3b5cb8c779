package toollist

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// unpinned are the members of a tool that may change as they like: no agent reads them, and no decision depends on them.
var unpinned = map[string]bool{"_meta": true, "icons": true}

// maxSorted is how many levels of a tool's JSON are sorted, so that the time is bounded. Deeper members have an order that
// counts.
const maxSorted = 32

// definitionOf is what counts of a tool: its JSON without what is [unpinned], with sorted members. Some servers write members in
// another order at each start. Members that are there twice stay so.
func definitionOf(raw json.RawMessage) json.RawMessage { return sorted(nil, raw, 0) }

// A member of an object, with the name as it is written.
type member struct {
	name         string
	written, raw []byte
}

// sorted appends a value with sorted members.
func sorted(to, value []byte, depth int) []byte {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || depth == maxSorted {
		return append(to, value...)
	}
	switch value[0] {
	case '{':
		var members []member
		rpc.Members(value, func(name, value []byte) {
			if m := (member{rpc.Name(name), name, value}); depth > 0 || !unpinned[m.name] {
				members = append(members, m)
			}
		})
		slices.SortStableFunc(members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
		to = append(to, '{')
		for i, m := range members {
			if i > 0 {
				to = append(to, ',')
			}
			to = append(append(append(to, '"'), m.written...), '"', ':')
			to = sorted(to, m.raw, depth+1)
		}
		return append(to, '}')
	case '[':
		to = append(to, '[')
		n := len(to)
		rpc.Elements(value, func(one []byte) {
			if len(to) > n {
				to = append(to, ',')
			}
			to = sorted(to, one, depth+1)
		})
		return append(to, ']')
	}
	return append(to, value...)
}

// fingerprint is a hash of what counts of a tool, and of whether there is another one of its name, which calls may reach.
func fingerprint(raw json.RawMessage, duplicated bool) string {
	h := sha256.New()
	_, _ = h.Write(definitionOf(raw)) // never fails
	if duplicated {
		_, _ = h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}
