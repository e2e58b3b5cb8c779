package sandboxtest

import (
	"context"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox"
)

// testPages converts pages to Markdown. A hostile one ends with its limits, and the next one is converted all the same.
func testPages(t *testing.T, open func() sandbox.Driver) {
	p := newPool(t, open, sandbox.Options{Warm: -1, Max: 1})
	plan := p.Plan("somebody", "", "")
	run, err := plan.Open(t.Context()) // of those that runs hold, the only one
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	good := func() {
		t.Helper()
		got, err := p.Markdown(t.Context(), `<p>a <b>b</b> <a href="/x">c</a>`, "https://example.com/")
		if want := "a **b** [c](https://example.com/x)"; err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	good()
	for _, tt := range []struct{ name, page, want string }{
		{"elements that are opened again", strings.Repeat("<b><i><u><p>", 400_000), "256 MiB of memory"},
		{"deep quotes", strings.Repeat("<blockquote>", 400) + strings.Repeat("<p>x", 10_000), "nested too deeply"},
	} {
		if _, err := p.Markdown(t.Context(), tt.page, ""); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want one with %q", tt.name, err, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Markdown(ctx, "<p>a", ""); err == nil {
		t.Error("a conversion that is cancelled ends well")
	}
	good()
}
