package results

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/costtest"
	"github.com/mcsh-dev/mcsh/upstream/questions"
)

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
		in, err := ReadInputRequired(json.RawMessage(raw))
		got := "none"
		switch {
		case err != nil:
			got = "error"
		case in != nil && in.State == nil:
			got = string('0'+rune(len(in.Requests))) + " -"
		case in != nil:
			got = string('0'+rune(len(in.Requests))) + " " + string(in.State)
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
		var in *InputRequired
		var err error
		costtest.Run(t, func() { in, err = ReadInputRequired(raw) })
		if in == nil || err != nil {
			return
		}
		if len(in.Requests) > maxAtOnce || len(in.State) > maxState {
			t.Fatalf("%d questions and %d bytes of state", len(in.Requests), len(in.State))
		}
		var again bytes.Buffer
		for _, q := range in.Requests {
			_ = questions.Check(questions.Declared{Form: true, URL: true, Sampling: true}, q.Method, q.Params)
			again.WriteByte("{,"[min(again.Len(), 1)])
			again.WriteByte('"')
			again.Write(q.Key)
			again.WriteString(`":null`)
		}
		if again.Len() > 0 && !json.Valid(append(again.Bytes(), '}')) {
			t.Fatalf("the names of questions are not JSON again: %s", again.Bytes())
		}
	})
}
