package texts_test

import (
	"testing"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

func TestPlain(t *testing.T) {
	for _, tt := range []struct {
		in    string
		lines bool
		want  string
	}{
		{"get_item(id: integer) – é 日本", false, "get_item(id: integer) – é 日本"},
		{"a\x1b[31m\nb", false, `a\x1b[31m\nb`},
		{"a\nb\r", true, "a\nb\\r"},
		{"10\u00a0000\u2028", true, "10\u00a0000\\u2028"},
		{"x\u202ey\u200bz\x00", true, `x\u202ey\u200bz\x00`},
	} {
		if got := texts.Plain(tt.in, tt.lines); got != tt.want {
			t.Errorf("Plain(%q, %v) = %q, want %q", tt.in, tt.lines, got, tt.want)
		}
	}
}
