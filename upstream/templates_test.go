package upstream

import (
	"regexp"
	"strings"
	"testing"
)

// FuzzFitsTemplate: a URI that is made of a template fits it, and any other one only if a pattern with any text for the
// expressions agrees.
func FuzzFitsTemplate(f *testing.F) {
	for _, seed := range [][2]string{{"item://a/7", "item://a/{id}"}, {"a", "{x}a{y}"}, {"ab", "a{b"}, {"", "{}"}, {"aXbXc", "a{x}b{y}c"}, {"aa", "a{x}aa"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, uri, template string) {
		var pattern strings.Builder
		pattern.WriteString(`(?s)^`)
		rest := template
		for {
			literal, after, found := strings.Cut(rest, "{")
			pattern.WriteString(regexp.QuoteMeta(literal))
			if !found {
				break
			}
			pattern.WriteString(`.*`)
			_, rest, _ = strings.Cut(after, "}")
		}
		want, err := regexp.Compile(pattern.String() + `$`)
		if err != nil {
			return // it is no UTF-8, or too long for a pattern
		}
		if got := fitsTemplate(uri, template); got != want.MatchString(uri) && strings.ToValidUTF8(uri, "") == uri {
			t.Errorf("%q fits %q: %t", uri, template, got)
		}
	})
}
