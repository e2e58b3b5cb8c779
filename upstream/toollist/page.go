package toollist

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// errPage is the error of a page that is no page.
var errPage = errors.New("it is not a list")

// ReadPage reads one page of a list, in which a member has the elements: add gets each, until it returns false. Then, and after the
// last page, next is empty. ttl is how long the list is current, or 0 if the server does not say it.
func ReadPage(raw json.RawMessage, member string, add func(one []byte) bool) (next string, ttl time.Duration, err error) {
	var list, cursor json.RawMessage
	object := json.Valid(raw) && rpc.Members(raw, func(name, value []byte) {
		switch string(name) {
		case member:
			list = value
		case "nextCursor":
			cursor = value
		case "ttlMs":
			if ms := 0.0; json.Unmarshal(value, &ms) == nil && ms > 0 {
				ttl = TTLOf(ms)
			}
		}
	})
	more, text := true, rpc.IsNull(cursor) || cursor[0] == '"'
	if !object && !rpc.IsNull(raw) || !text || !rpc.IsNull(list) && !rpc.Elements(list, func(one []byte) { more = more && add(one) }) {
		return "", 0, errPage
	}
	if more {
		next = rpc.Text(cursor)
	}
	return next, ttl, nil
}
