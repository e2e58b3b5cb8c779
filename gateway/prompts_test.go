package gateway

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestPromptNames: names of prompts fit clients, and no two prompts have the same name.
func TestPromptNames(t *testing.T) {
	for _, test := range []struct{ server, prompt, want string }{
		{"github", "review", "github__review"},
		{"github", "_review", "github___review"},
		{"git_hub", "a__b", "git_hub__a__b"},
	} {
		if got := promptName(test.server, test.prompt); got != test.want {
			t.Errorf("%q and %q: got %q, want %q", test.server, test.prompt, got, test.want)
		}
	}
	fits := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	parts := []string{"a", "a_", "a__", "_a", "__a", "a b", "a/b", "ä", "", strings.Repeat("x", 70), strings.Repeat("x", 71)}
	names := map[string]string{}
	for _, server := range parts {
		for _, prompt := range parts {
			name, both := promptName(server, prompt), fmt.Sprintf("%q %q", server, prompt)
			if other := names[name]; other != "" || !fits.MatchString(name) {
				t.Errorf("%s is called %q, as %s", both, name, other)
			}
			names[name] = both
		}
	}
}
