package questions

import (
	"encoding/json"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// MethodRoots asks for the directories that a server may use.
const MethodRoots = "roots/list"

// Roots is the result of roots/list with URIs, nil without any.
func Roots(uris []string) json.RawMessage {
	if len(uris) == 0 {
		return nil
	}
	type root struct {
		URI string `json:"uri"`
	}
	list := make([]root, len(uris))
	for i, uri := range uris {
		list[i] = root{uri}
	}
	return json.RawMessage(`{"roots":` + texts.JSON(list) + `}`)
}
