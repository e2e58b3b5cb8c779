//go:build !race

package pipe_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/servers/pipe"
)

// TestStdout: standard output is cut to what a result may have, at a character, and its size is that of all.
func TestStdout(t *testing.T) {
	const alone, small = 1 << 20, 200 << 10
	for _, tt := range []struct {
		name, unit string
		size       int
		results    int64
		line       string
	}{
		{"letters", "x", alone + 1, 0, "ls"},
		{"just enough", "x", alone, 0, "ls"},
		{"euros", "€", alone + 100, 0, "ls"},
		{"nothing", "", 0, 0, "ls"},
		{"letters", "x", small, small, "ls"},
		{"quotes", `"\`, small, small, "ls"},
		{"controls", "\x01", small, small, "ls"},
		{"euros", "€", small, small, "ls"},
		{"no UTF-8", "\xff", small, small, "ls"},
		{"a little", "x", 100, small, "ls"},
		{"a long line", "x", small, small, "ls '" + strings.Repeat(`\"`, 30<<10) + "'"},
		{"many commands", "x", small, small, "ls" + strings.Repeat(" | ls '"+strings.Repeat(`"`, 900)+"'", 63)},
		{"a long name", "x", 2 * small, 2 * small, "ls | tee '" + strings.Repeat("\x01\x01\x01\x01\x01\x01\x01/", 150) + "x'"},
	} {
		text := strings.Repeat(tt.unit, tt.size/max(len(tt.unit), 1))
		c := open(t, pipe.Options{Results: tt.results}, &echo{says: func(pipe.Line, string) (string, error) { return text, nil }})
		line, err := json.Marshal(map[string]string{"command": tt.line})
		if err != nil {
			t.Fatal(err)
		}
		r := c.Call(t, "pipe", string(line))
		var a struct {
			Stdout string
			Meta   struct {
				Steps []struct {
					Size      int `json:"output_size"`
					Truncated bool
				}
			}
		}
		if err := json.Unmarshal([]byte(r.Text), &a); err != nil {
			t.Fatal(err)
		}
		whole, _ := texts.Valid([]byte(text))
		encoded, err := json.Marshal(r.CallToolResult)
		step := a.Meta.Steps[len(a.Meta.Steps)-1]
		switch {
		case err != nil:
			t.Error(err)
		case !strings.HasPrefix(whole, a.Stdout) || step.Size != len(text) || step.Truncated != (len(a.Stdout) < len(whole)):
			t.Errorf("%s: %d bytes of %d, size %d, truncated %v", tt.name, len(a.Stdout), len(whole), step.Size, step.Truncated)
		case step.Truncated != (len(text) > alone || len(text) > 200 && tt.results > 0):
			t.Errorf("%s: %d bytes, truncated %v", tt.name, len(text), step.Truncated)
		case tt.results > 0 && int64(len(encoded)) > tt.results:
			t.Errorf("%s: the result has %d bytes, more than %d", tt.name, len(encoded), tt.results)
		}
	}
}
