package markdown

import (
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func TestBounded(t *testing.T) {
	for _, tt := range []struct{ name, page, want string }{
		{"empty", "", ""},
		{"text", "a <b>bold</b> word", "a **bold** word"},
		{"link", `<a href="/x">y</a>`, "[y](https://example.com/x)"},
		{"table", "<table><td>x", "x"},
		{"many images within links", strings.Repeat(`<a href="/x"><img src="/y"></a>`, 2000), strings.Repeat("[![](https://example.com/y)](https://example.com/x)", 2000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Bounded(t.Context(), tt.page, "https://example.com")
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestBoundedRefuses(t *testing.T) {
	for _, tt := range []struct{ name, page, want string }{
		{"unclosed formatting", strings.Repeat("<b><i><u><p>", 400_000), "more than 200000 nodes"},
		{"formatting with attributes", strings.Repeat(`<b a=1><b a=2><b a=3><b a=4>`, 250) + strings.Repeat("<p>x", 1000), "more than 200000 nodes"},
		{"many elements", strings.Repeat("<p>x</p>", 100_000), "more than 200000 nodes"},
		{"deep quotes", strings.Repeat("<blockquote>", 400) + strings.Repeat("<p>x", 10_000), "nested too deeply"},
		{"deep", strings.Repeat("<div>", 600), "512"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Bounded(t.Context(), tt.page, ""); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// TestBoundedWaits: a page waits for the one before it until its context ends.
func TestBoundedWaits(t *testing.T) {
	converting <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := Bounded(ctx, "x", "")
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	<-converting
	if got, err := Bounded(t.Context(), "x", ""); got != "x" || err != nil {
		t.Errorf("got %q, %v once the page before was converted", got, err)
	}
}

// FuzzNodes compares the bound with the nodes that the parser makes.
func FuzzNodes(f *testing.F) {
	for _, page := range []string{
		"", "<p>x", "<a><img></a><b>x<br></b>", "<svg><a><link></a>", "<table><b><input><col></b>", "<table><td>x<td>y", "<b><i><u><p><p><p>", "<b><p></b><p></b>", "<a><a><a>", "<b a=1><b a=2><p>x<p>y",
		"<b><em><foo><foo><aside></b></em>", "<select><option><optgroup>", "<svg><foreignObject><p>", "<frameset>", "</p></br>", "<nobr><nobr>",
	} {
		f.Add(page)
	}
	f.Fuzz(func(t *testing.T, page string) {
		bound := countNodes(page, maxNodes)
		if bound > maxNodes || len(page) > 10_000 {
			return
		}
		doc, err := html.Parse(strings.NewReader(page))
		if err != nil {
			return // too deep
		}
		nodes := -4 // the document, html, head and body
		for range doc.Descendants() {
			nodes++
		}
		if nodes > bound {
			t.Errorf("%d nodes, bound %d", nodes, bound)
		}
	})
}
