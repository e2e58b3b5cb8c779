package outward_test

import (
	"testing"

	"github.com/mcsh-dev/mcsh/upstream/outward"
)

// TestWithoutApp: only the members of MCP Apps are taken off metadata.
func TestWithoutApp(t *testing.T) {
	for meta, want := range map[string]string{
		`{}`:               `{}`,
		`{"a":1}`:          `{"a":1}`,
		`{"ui":{"a":"}"}}`: `{}`,
		`{"a":1.50,"ui":{},"b":[{"ui":1}],"ui/resourceUri":"ui://x","UI":1,"\u0075i":2,"uid":3}`: `{"a":1.50,"b":[{"ui":1}],"uid":3}`,
		`5`:      `5`,
		`{"ui":`: `{"ui":`,
	} {
		if got := string(outward.WithoutApp([]byte(meta))); got != want {
			t.Errorf("%s becomes %s, want %s", meta, got, want)
		}
	}
}

// FuzzOutwardURI: the parts of a URI come back, whatever they are.
func FuzzOutwardURI(f *testing.F) {
	for _, seed := range [][2]string{{"a", "doc://x"}, {"a/b %", "mcsh://servers/a/x"}, {"ü", ""}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, server, original string) {
		s, o, ok := outward.Split(outward.URI(server, original))
		if server != "" && (!ok || s != server || o != original) {
			t.Errorf("%q and %q became %q and %q", server, original, s, o)
		}
		outward.Split(original)
	})
}
