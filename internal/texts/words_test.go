package texts_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "[]",
		"listIssues list_issues2": "[list issues list issues2]",
		"HTTPServer getURL aB":    "[http server get url a b]",
		"Ärger\xffÜber, 中Ab":      "[ärger über 中 ab]",
		"A":                       "[a]",
	} {
		if got := fmt.Sprint(slices.Collect(texts.Words(text))); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	for word := range texts.Words("one two") {
		if word != "one" {
			t.Errorf("after a break comes %q", word)
		}
		break
	}
}
