package gateway

import "testing"

func TestPlain(t *testing.T) {
	for _, tt := range []struct {
		in    string
		lines bool
		want  string
	}{
		{"get_item(id: integer) – é 日本", false, "get_item(id: integer) – é 日本"},
		{"a\x1b[31m\nb", false, `a\x1b[31m\nb`},
		{"a\nb\r", true, "a\nb\\r"},
		{"x\u202ey\u200bz\x00", true, `x\u202ey\u200bz\x00`},
	} {
		if got := Plain(tt.in, tt.lines); got != tt.want {
			t.Errorf("Plain(%q, %v) = %q, want %q", tt.in, tt.lines, got, tt.want)
		}
	}
}
