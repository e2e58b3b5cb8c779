package rpc_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// TestLineSendsOne sends messages whose arguments come from data that somebody has indented: each is one line, and means
// the same. A server that reads lines would answer nothing else.
func TestLineSendsOne(t *testing.T) {
	for msg, want := range map[string]string{
		`{"id":1}`: `{"id":1}`,
		"{\"params\": {\n  \"labels\": [\r\n    {\"name\": \"a\\r\\nb ü\"}\r  ]\n}}": `{"params": {   "labels": [      {"name": "a\r\nb ü"}   ] }}`,
	} {
		sent := []byte(msg)
		var out bytes.Buffer
		if err := rpc.NewLine(strings.NewReader(""), &out, rpc.LineOptions{}).Send(t.Context(), sent); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != want+"\n" {
			t.Errorf("got %q, want %q and the end of the line", got, want)
		}
		if string(sent) != msg {
			t.Errorf("the caller's message became %q", sent)
		}
	}
}
