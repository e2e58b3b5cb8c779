package questions

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// questionCases are questions with why they are refused, if they are.
var questionCases = []struct {
	name, method, params string
	can                  Declared
	refused              string
}{
	{"a form", rpc.Elicitation, `{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`, Declared{Form: true}, ""},
	{"a form with choices", rpc.Elicitation, `{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","enum":["x"]}}}}}`, Declared{Form: true}, ""},
	{"a form without questions", rpc.Elicitation, `{"message":"m","requestedSchema":{"type":"object"}}`, Declared{Form: true}, ""},
	{"a nested form", rpc.Elicitation, `{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"object"}}}}`, Declared{Form: true}, "no string"},
	{"a form of a list", rpc.Elicitation, `{"message":"m","requestedSchema":{"type":"array"}}`, Declared{Form: true}, "not of an object"},
	{"no form", rpc.Elicitation, `{"message":"m"}`, Declared{Form: true}, "not of an object"},
	{"members of other types", rpc.Elicitation, `{"message":1}`, Declared{Form: true}, "other types"},
	{"a form, only addresses declared", rpc.Elicitation, `{"message":"m","requestedSchema":{"type":"object"}}`, Declared{URL: true}, "does not answer"},
	{"an address", rpc.Elicitation, `{"mode":"url","message":"m","url":"https://example.com/a?b=c#d","elicitationId":"1"}`, Declared{URL: true}, ""},
	{"an address, only forms declared", rpc.Elicitation, `{"mode":"url","url":"https://example.com/"}`, Declared{Form: true}, "does not answer"},
	{"a script", rpc.Elicitation, `{"mode":"url","url":"javascript:alert(1)"}`, Declared{URL: true}, "no"},
	{"a file", rpc.Elicitation, `{"mode":"url","url":"file:///etc/passwd"}`, Declared{URL: true}, "address of http"},
	{"an address with a name", rpc.Elicitation, `{"mode":"url","url":"https://bank.example@evil.example/"}`, Declared{URL: true}, "address of http"},
	{"an address with letters that look alike", rpc.Elicitation, `{"mode":"url","url":"https://bаnk.example/"}`, Declared{URL: true}, "address of http"},
	{"an address with a line break", rpc.Elicitation, `{"mode":"url","url":"https://example.com/\n"}`, Declared{URL: true}, "address of http"},
	{"a long address", rpc.Elicitation, `{"mode":"url","url":"https://example.com/` + strings.Repeat("x", 2<<10) + `"}`, Declared{URL: true}, "address of http"},
	{"another mode", rpc.Elicitation, `{"mode":"voice","message":"m"}`, Declared{Form: true, URL: true}, "mode is unknown"},
	{"sampling", rpc.Sampling, `{"messages":[]}`, Declared{Sampling: true}, ""},
	{"sampling, not declared", rpc.Sampling, `{"messages":[]}`, Declared{Form: true}, "does not answer"},
	{"no object", rpc.Sampling, `[]`, Declared{Sampling: true}, "not a JSON object"},
	{"no JSON", rpc.Sampling, `{`, Declared{Sampling: true}, "not a JSON object"},
	{"nothing", rpc.Sampling, ``, Declared{Sampling: true}, "not a JSON object"},
	{"too long", rpc.Sampling, `{"a":"` + strings.Repeat("x", rpc.MaxQuestion) + `"}`, Declared{Sampling: true}, "too long"},
	{"another method", "tools/list", `{}`, Declared{true, true, true}, "does not answer"},
}

// TestCheckQuestion: only valid questions of a kind that the caller has declared come to it.
func TestCheckQuestion(t *testing.T) {
	for _, c := range questionCases {
		err := Check(c.can, c.method, json.RawMessage(c.params))
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.refused)
		}
	}
}
