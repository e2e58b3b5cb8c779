package gateway

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestAbilities: a client can answer what its request says in the right form, and nothing else.
func TestAbilities(t *testing.T) {
	type object = map[string]any
	const form, url, sampling = 1, 2, 4
	for name, c := range map[string]struct {
		says any
		want int
	}{
		"nothing":      {object{}, 0},
		"elicitation":  {object{"elicitation": object{}}, form},
		"form":         {object{"elicitation": object{"form": object{}}}, form},
		"address":      {object{"elicitation": object{"url": object{}}}, url},
		"all":          {object{"elicitation": object{"url": object{}, "form": object{}}, "sampling": object{}}, form + url + sampling},
		"null":         {object{"elicitation": nil, "sampling": nil}, 0},
		"wrong types":  {object{"elicitation": 1, "sampling": true}, 0},
		"wrong within": {object{"elicitation": object{"url": 1, "form": object{}}}, form},
		"not said":     {nil, 0},
		"no object":    {"all", 0},
	} {
		a, got := abilities(&mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Meta: mcp.Meta{mcp.MetaKeyClientCapabilities: c.says}}}), 0
		for bit, is := range map[int]bool{form: a.Form, url: a.URL, sampling: a.Sampling} {
			if is {
				got += bit
			}
		}
		if got != c.want {
			t.Errorf("%s: got %b, want %b", name, got, c.want)
		}
	}
	if a := abilities(&mcp.CallToolRequest{}); a.Form || a.URL || a.Sampling {
		t.Errorf("a request without parameters has %+v", a)
	}
}
