package temporal

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

type says string

func (s says) Error() string   { return "secret" }
func (s says) JobCode() string { return string(s) }

// TestCode: of an error a word or a type is written down, never its text.
func TestCode(t *testing.T) {
	plain := errors.New("secret")
	for _, c := range []struct {
		err  error
		want string
	}{
		{plain, "*errors.errorString"},
		{fmt.Errorf("a: %w", fmt.Errorf("b: %w", plain)), "*errors.errorString"},
		{says("no-store"), "no-store"},
		{fmt.Errorf("a: %w", says("no-store")), "no-store"},
		{errors.Join(plain, says("no-store")), "no-store"},
		{errors.Join(plain), "*errors.joinError"},
		{says("the secret"), "temporal.says"},
		{says(strings.Repeat("x", 33)), "temporal.says"},
		{errPanic, "panic"},
	} {
		if got := code(c.err); got != c.want {
			t.Errorf("%#v: got %q, want %q", c.err, got, c.want)
		}
	}
}
