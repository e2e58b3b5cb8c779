package upstream

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/costtest"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// questionCases are questions with why they are refused, if they are.
var questionCases = []struct {
	name, method, params string
	can                  declared
	refused              string
}{
	{"a form", rpc.Elicitation, `{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`, declared{Form: true}, ""},
	{"a form with choices", rpc.Elicitation, `{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","enum":["x"]}}}}}`, declared{Form: true}, ""},
	{"a form without questions", rpc.Elicitation, `{"message":"m","requestedSchema":{"type":"object"}}`, declared{Form: true}, ""},
	{"a nested form", rpc.Elicitation, `{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"object"}}}}`, declared{Form: true}, "no string"},
	{"a form of a list", rpc.Elicitation, `{"message":"m","requestedSchema":{"type":"array"}}`, declared{Form: true}, "not of an object"},
	{"no form", rpc.Elicitation, `{"message":"m"}`, declared{Form: true}, "not of an object"},
	{"members of other types", rpc.Elicitation, `{"message":1}`, declared{Form: true}, "other types"},
	{"a form, only addresses declared", rpc.Elicitation, `{"message":"m","requestedSchema":{"type":"object"}}`, declared{URL: true}, "does not answer"},
	{"an address", rpc.Elicitation, `{"mode":"url","message":"m","url":"https://example.com/a?b=c#d","elicitationId":"1"}`, declared{URL: true}, ""},
	{"an address, only forms declared", rpc.Elicitation, `{"mode":"url","url":"https://example.com/"}`, declared{Form: true}, "does not answer"},
	{"a script", rpc.Elicitation, `{"mode":"url","url":"javascript:alert(1)"}`, declared{URL: true}, "no"},
	{"a file", rpc.Elicitation, `{"mode":"url","url":"file:///etc/passwd"}`, declared{URL: true}, "address of http"},
	{"an address with a name", rpc.Elicitation, `{"mode":"url","url":"https://bank.example@evil.example/"}`, declared{URL: true}, "address of http"},
	{"an address with letters that look alike", rpc.Elicitation, `{"mode":"url","url":"https://bаnk.example/"}`, declared{URL: true}, "address of http"},
	{"an address with a line break", rpc.Elicitation, `{"mode":"url","url":"https://example.com/\n"}`, declared{URL: true}, "address of http"},
	{"a long address", rpc.Elicitation, `{"mode":"url","url":"https://example.com/` + strings.Repeat("x", 2<<10) + `"}`, declared{URL: true}, "address of http"},
	{"another mode", rpc.Elicitation, `{"mode":"voice","message":"m"}`, declared{Form: true, URL: true}, "mode is unknown"},
	{"sampling", rpc.Sampling, `{"messages":[]}`, declared{Sampling: true}, ""},
	{"sampling, not declared", rpc.Sampling, `{"messages":[]}`, declared{Form: true}, "does not answer"},
	{"no object", rpc.Sampling, `[]`, declared{Sampling: true}, "not a JSON object"},
	{"no JSON", rpc.Sampling, `{`, declared{Sampling: true}, "not a JSON object"},
	{"nothing", rpc.Sampling, ``, declared{Sampling: true}, "not a JSON object"},
	{"too long", rpc.Sampling, `{"a":"` + strings.Repeat("x", rpc.MaxQuestion) + `"}`, declared{Sampling: true}, "too long"},
	{"another method", "tools/list", `{}`, declared{true, true, true}, "does not answer"},
}

// TestCheckQuestion: only valid questions of a kind that the caller has declared come to it.
func TestCheckQuestion(t *testing.T) {
	for _, c := range questionCases {
		err := checkQuestion(c.can, c.method, json.RawMessage(c.params))
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.refused)
		}
	}
}

// TestReadInputRequired: a result that asks is read exactly, and one that asks in a wrong way is an error.
func TestReadInputRequired(t *testing.T) {
	for raw, want := range map[string]string{
		`{"content":[]}`: "none",
		`{"content":[{"type":"text","text":"input_required"}]}`:                                                         "none",
		`{"content":[{"type":"text","text":"x","inputRequests":{"a":{"method":"m"}}}]}`:                                 "none",
		`{"resultType":"input_required"}`:                                                                               "0 -",
		`{"resultType":"input_required","inputRequests":{},"requestState":"s"}`:                                         `0 "s"`,
		`{"resultType":"input_required","inputRequests":{"a":{"method":"m","params":{"b":1}}},"requestState":"\u0061"}`: `1 "\u0061"`,
		`{"inputRequests":{"a":{"method":"m"}}}`:                                                                        "1 -",
		`{"resultType":"input_required","inputRequests":[]}`:                                                            "error",
		`{"resultType":"input_required","inputRequests":{"a":1}}`:                                                       "error",
		`{"resultType":"input_required","inputRequests":{"a":{}}}`:                                                      "error",
		`{"resultType":"input_required","inputRequests":{"a":{"method":"m"},"\u0061":{"method":"m"}}}`:                  "error",
		`{"resultType":"input_required","requestState":1}`:                                                              "error",
		`{"resultType":"input_required"`:                                                                                "none",
	} {
		in, err := readInputRequired(json.RawMessage(raw))
		got := "none"
		switch {
		case err != nil:
			got = "error"
		case in != nil && in.state == nil:
			got = string('0'+rune(len(in.requests))) + " -"
		case in != nil:
			got = string('0'+rune(len(in.requests))) + " " + string(in.state)
		}
		if got != want {
			t.Errorf("%s: got %s (%v), want %s", raw, got, err, want)
		}
	}
}

// FuzzInputRequired: whatever a result is, reading its questions costs little, and all that is read is within its bounds and is
// JSON again.
func FuzzInputRequired(f *testing.F) {
	f.Add([]byte(`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"m"}}},"requestState":"s"}`))
	f.Add([]byte(`{"resultType":"input_required","inputRequests":{"a":{"method":"m"},"\u0061":{"method":"m"}}}`))
	f.Add([]byte(`{"inputRequests":{"\"":{"params":[],"method":"roots\/list"}},"requestState":null}`))
	f.Add([]byte(`{"resultType":"input_required","inputRequests":` + strings.Repeat(`{"a":`, 1000) + strings.Repeat(`}`, 1001)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		raw = raw[:min(len(raw), costtest.Input)]
		var in *inputRequired
		var err error
		costtest.Run(t, func() { in, err = readInputRequired(raw) })
		if in == nil || err != nil {
			return
		}
		if len(in.requests) > maxAtOnce || len(in.state) > maxState {
			t.Fatalf("%d questions and %d bytes of state", len(in.requests), len(in.state))
		}
		var again bytes.Buffer
		for _, q := range in.requests {
			_ = checkQuestion(declared{true, true, true}, q.method, q.params)
			again.WriteString(choose(again.Len() == 0, `{"`, `,"`))
			again.Write(q.key)
			again.WriteString(`":null`)
		}
		if again.Len() > 0 && !json.Valid(append(again.Bytes(), '}')) {
			t.Fatalf("the names of questions are not JSON again: %s", again.Bytes())
		}
	})
}
