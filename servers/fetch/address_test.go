package fetch

import (
	"testing"

	"github.com/mcsh-dev/mcsh/internal/markdown"
)

func TestHosts(t *testing.T) {
	h, err := newHosts([]string{"*.internal", "Exact.Example.", "10.0.0.?", "::1"})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{
		"a.internal": true, "a.b.internal": true, "A.INTERNAL.": true, "exact.example": true, "10.0.0.7": true, "::1": true,
		"internal": false, "a.internal.evil.com": false, "notexact.example": false, "10.0.0.77": false, "": false, "::2": false,
	} {
		if got := h.match(host); got != want {
			t.Errorf("match(%q) = %v, want %v", host, got, want)
		}
	}
	for _, bad := range []string{"", "[", "http://x", "a/b", "host:80", "me@host"} {
		if _, err := newHosts([]string{bad}); err == nil {
			t.Errorf("the pattern %q was accepted", bad)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	for _, s := range []string{"http://a/b?c#d", "https://u:p@h", "http:///x", "http:a", "//h", "http://[::1%25eth0]:80/", "HTTP://X", "http://a\x00b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := parseURL(raw)
		if err != nil {
			return
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Hostname() == "" {
			t.Errorf("%q was accepted as %v", raw, u)
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add([]byte("<p>x"), "text/html; charset=utf-16", "auto")
	f.Add([]byte("\xff\xfea\x00"), "text/plain", "raw")
	f.Add([]byte(`{"a":1}`), "application/json", "markdown")
	f.Add([]byte("<blockquote><ul><li>x"), ";;", "auto")
	base, err := parseURL("http://example.com/a/")
	if err != nil {
		f.Fatal(err)
	}
	s := &server{markdown: markdown.Bounded}
	f.Fuzz(func(t *testing.T, body []byte, contentType, as string) {
		text, err := s.text(t.Context(), classify(body, contentType), as, base, &answer{})
		if err == nil && text != string([]rune(text)) {
			t.Errorf("not valid UTF-8: %q", text)
		}
	})
}
