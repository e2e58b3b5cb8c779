package gateway

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// RoundedID is what is said of a message whose id the SDK does not keep.
const RoundedID = "invalid request: the id of the message is neither a string nor a whole number up to 2^53"

// RoundsID reports whether the SDK, which reads numbers as floating point and has ids as int64, answers with another id
// than a message has. Whoever has sent that message would wait for ever.
func RoundsID(id json.RawMessage) bool {
	var number float64
	if len(id) == 0 || id[0] != '-' && (id[0] < '0' || id[0] > '9') {
		return false
	}
	if json.Unmarshal(id, &number) != nil {
		return true
	}
	if n, err := strconv.ParseInt(string(id), 10, 64); err == nil {
		return number >= 1<<63 || int64(number) != n
	}
	return number != math.Trunc(number) || math.Abs(number) >= 1<<53
}

// refuseRounded answers a request that goes to the SDK if its id would be rounded there, and reports whether it did.
func (e *endpoint) refuseRounded(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPost {
		return false
	}
	body, ok := readAhead(r)
	var id json.RawMessage
	asks := false
	ok = ok && rpc.Members(body, func(name, value []byte) {
		switch string(name) {
		case "id":
			id = value
		case "method":
			asks = true
		}
	})
	if !ok || !asks || !RoundsID(id) || !json.Valid(body) {
		return false
	}
	refusal, _ := encoded(answer{Version: "2.0", ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: RoundedID}})
	respond(w, http.StatusBadRequest, refusal)
	return true
}
