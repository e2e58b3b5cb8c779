package texts_test

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

func TestCutAndFit(t *testing.T) {
	for _, test := range []struct {
		s        string
		n        int
		cut, fit string
	}{
		{"", 0, "", ""},
		{"", 3, "", ""},
		{"abc", 3, "abc", "abc"},
		{"abcd", 3, "abc…", "ab…"},
		{"abcd", 1, "a…", "…"},
		{"abcd", 0, "…", ""},
		{"abcd", -1, "…", ""},
		{"äöü", 3, "ä…", "äöü"},
		{"äöü", 2, "ä…", "ä…"},
		{"€", 2, "…", "€"},
		{"a\xffb", 3, "ab", "ab"},
		{"a\xffbc", 3, "ab…", "a…"},
	} {
		if got := texts.Cut(test.s, test.n); got != test.cut {
			t.Errorf("Cut(%q, %d) = %q, want %q", test.s, test.n, got, test.cut)
		}
		if got := texts.Fit(test.s, test.n); got != test.fit {
			t.Errorf("Fit(%q, %d) = %q, want %q", test.s, test.n, got, test.fit)
		}
	}
}

func TestQuote(t *testing.T) {
	for s, want := range map[string]string{
		"":                      `""`,
		"a \"b\"\n":             `"a \"b\"\n"`,
		"\xff":                  `"\xff"`,
		strings.Repeat("é", 30): `"` + strings.Repeat("é", 30) + `"`,
		strings.Repeat("é", 31): `"` + strings.Repeat("é", 30) + `…"`,
	} {
		if got := texts.Quote([]byte(s)); got != want || texts.Quote(s) != want {
			t.Errorf("Quote(%q) = %s, want %s", s, got, want)
		}
	}
}

func TestJSON(t *testing.T) {
	for want, v := range map[string]any{
		`"<a&b>"`: "<a&b>", `["x",1]`: []any{"x", 1}, "": math.Inf(1),
	} {
		if got := texts.JSON(v); got != want {
			t.Errorf("JSON(%v) = %s, want %s", v, got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 1023: "1023 bytes", 1 << 10: "1 KiB", 1536: "1536 bytes", 10 << 10: "10 KiB", 15_000: "14.6 KiB", 1 << 20: "1 MiB",
		1<<20 - 1: "1 MiB", 1<<20 + 1: "1 MiB", 64 << 20: "64 MiB", 5 << 30: "5 GiB", 1 << 40: "1 TiB", math.MaxInt64: "8192 PiB",
	} {
		if got := texts.Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}

// FuzzTexts: what is cut is valid UTF-8, within its bound, and the text itself where that fits.
func FuzzTexts(f *testing.F) {
	f.Add("äöü", 3)
	f.Add("a\xff\xc3b€", 4)
	f.Fuzz(func(t *testing.T, s string, n int) {
		cut, fit, quoted := texts.Cut(s, n), texts.Fit(s, n), texts.Quote(s)
		for _, got := range []string{cut, fit, quoted} {
			if !utf8.ValidString(got) {
				t.Fatalf("%q at %d: %q is not UTF-8", s, n, got)
			}
		}
		if len(cut) > max(n, 0)+len("…") || utf8.RuneCountInString(fit) > max(n, 0) {
			t.Fatalf("%q at %d: %q or %q is too long", s, n, cut, fit)
		}
		if utf8.ValidString(s) && (len(s) <= n && cut != s || utf8.RuneCountInString(s) <= n && fit != s) {
			t.Fatalf("%q at %d: got %q and %q", s, n, cut, fit)
		}
	})
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0 items", 1: "1 item", 2: "2 items", -1: "-1 items", math.MaxInt64: "9223372036854775807 items"} {
		if got := texts.Count(n, "item"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}
