package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/stages"
)

// TestInterview: a person at a terminal answers the questions of servers, field by field.
func TestInterview(t *testing.T) {
	const form = `{"message":"Who?","requestedSchema":{"type":"object","required":["name"],"properties":{"name":{"type":"string","title":"Your name"},"n":{"type":"integer"},"ok":{"type":"boolean"}}}}`
	const page = `{"mode":"url","message":"Pay","url":"https://pay.example.com/x"}`
	tests := map[string]struct{ params, typed, want, shown string }{
		"all":             {form, "y\nAnn\n7\nyes\n", `{"action":"accept","content":{"n":7,"name":"Ann","ok":true}}`, "  name (Your name): "},
		"optional":        {form, "yes\nAnn\n\n\n", `{"action":"accept","content":{"name":"Ann"}}`, "  n, integer, or nothing: "},
		"again":           {form, "y\nAnn\nseven\n7\n\n", `{"action":"accept","content":{"n":7,"name":"Ann"}}`, "  the answer is not an integer\n"},
		"wrong too often": {form, "y\nAnn\na\nb\nc\n\n", `{"action":"cancel"}`, "  the answer is not an integer\n"},
		"no":              {form, "\n", `{"action":"cancel"}`, "  | Who?\nAnswer it? [y/N] "},
		"end of input":    {form, "y\nAnn\n", `{"action":"cancel"}`, "Answer it?"},
		"page":            {page, "y\n", `{"action":"accept"}`, "opens a page"},
		"long line":       {form, "y\n" + strings.Repeat("x", 70<<10) + "\n", `{"action":"cancel"}`, "Answer it?"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var shown strings.Builder
			begun := 0
			a := newInterview(strings.NewReader(test.typed), &shown, func() { begun++ }).asker(t.Context())
			got, err := a.Ask(t.Context(), stages.Question{Server: "shop", Tool: "buy", Method: "elicitation/create", Params: json.RawMessage(test.params)})
			if err != nil || string(got) != test.want || begun != 1 {
				t.Errorf("got %s, %v", got, err)
			}
			if name == "page" {
				test.shown = "asks you to open a page of pay.example.com in a call of its tool \"buy\". These are its own words:\n  | Pay\nThe page: https://pay.example.com/x\n"
			}
			if !strings.Contains(shown.String(), test.shown) {
				t.Errorf("the person has seen %s", shown.String())
			}
		})
	}
}
