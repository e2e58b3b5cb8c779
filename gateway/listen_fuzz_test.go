package gateway

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// FuzzListen: any bytes are read without a panic, and what counts as a request that lasts is one of the newer era, whose wishes
// can be read.
func FuzzListen(f *testing.F) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for _, params := range []string{
		`{` + meta + `,"notifications":{"resourceSubscriptions":["a:b"],"toolsListChanged":true}}`, `{"notifications":{}}`, `{` + meta + `}`,
		`{` + meta + `,"notifications":[]}`, `{` + meta + `,"notifications":{"resourceSubscriptions":"a"}}`, `{` + meta + `,"notifications":{},"more":1}`,
	} {
		f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":` + params + `}`))
	}
	listens := func(context.Context, *Call, func([]byte) error) (mcp.Result, error) { return nil, nil }
	f.Fuzz(func(t *testing.T, message []byte) {
		c := (&front{listens: listens}).readCall(message)
		if c == nil {
			return
		}
		if !c.Lasts() || c.wants == nil || !c.stateless || !json.Valid(c.id) || !json.Valid(message) {
			t.Errorf("%q is read as %+v", message, c)
		}
		c.lists(&mcp.ServerCapabilities{})
		if wantsAny(*c.wants) {
			t.Errorf("%q wants %+v of a server that has nothing", message, c.wants)
		}
	})
}
