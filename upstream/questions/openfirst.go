package questions

import (
	"encoding/json"
	"strings"
)

// CodeOpenFirst is the protocol error of a server that wants its caller to open addresses in a browser before the call.
const CodeOpenFirst = -32042

const (
	maxOpenFirst = 3        // addresses that a hint names
	maxOpenData  = 64 << 10 // bytes of the data of the error that are read
)

// OpenFirstHint is the hint for an error with [CodeOpenFirst] and its data.
func OpenFirstHint(data json.RawMessage) string {
	var asked struct {
		Elicitations []struct {
			URL string `json:"url"`
		} `json:"elicitations"`
	}
	if len(data) <= maxOpenData {
		_ = json.Unmarshal(data, &asked) // as far as it can be read
	}
	var addresses []string
	for _, e := range asked.Elicitations {
		if plain := plainAddress(e.URL); plain != "" && len(addresses) < maxOpenFirst {
			addresses = append(addresses, plain)
		}
	}
	if len(addresses) == 0 {
		return "sign in to the service in a browser first; the server names the address"
	}
	return "the server asks somebody who trusts it to open " + strings.Join(addresses, " and ") + " in a browser; then call again"
}
