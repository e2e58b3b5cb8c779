package rank_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/gateway/rank"
)

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"listIssues": "list issue", "list_issues-v2": "list issue v2", "queries, Boxes & classes": "query box class",
		"HTTPServer": "httpserver", "status address": "status address", "Übergröße": "übergröße", "": "",
	} {
		if got := strings.Join(rank.Words(text), " "); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestSearch(t *testing.T) {
	var docs [][]rank.Field
	for _, d := range [][2]string{
		{"create_issue", "Create a new issue in a repository"},
		{"list_issues", "List the issues of a repository"},
		{"get_weather", "Tells the weather of a city. Never mentions an issue"},
		{"list_commits", "List commits of a branch in a repository"},
		{"add_labels", "Adds labels"},
		{"", ""},
	} {
		docs = append(docs, []rank.Field{{Text: d[0], Weight: 3}, {Text: d[1], Weight: 1}})
	}
	for _, c := range []struct {
		query string
		n     int
		want  string
	}{
		{"issue", 9, "[1 0 2]"},
		{"list issues", 2, "[1 3]"},
		{"WEATHER in the city", 1, "[2]"},
		{"label", 5, "[4]"},
		{"nothing of that", 9, "[1 3 2]"},
		{"zebra", 9, "[]"},
		{"", 9, "[]"},
		{"?!", 9, "[]"},
		{"issue", 0, "[]"},
	} {
		if got := fmt.Sprint(rank.Search(c.query, docs, c.n)); got != c.want {
			t.Errorf("%q: got %s, want %s", c.query, got, c.want)
		}
	}
	if rank.Search("x", nil, 5) != nil {
		t.Error("found something in nothing")
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("list issues", "Lists ISSUES_of x")
	f.Fuzz(func(t *testing.T, query, text string) {
		docs := [][]rank.Field{{{Text: text, Weight: 1}}, {{Text: query, Weight: 2}}, nil}
		found := rank.Search(query, docs, 2)
		if len(rank.Words(query)) > 0 && !slices.Contains(found, 1) {
			t.Errorf("%q does not find itself: %v", query, found)
		}
	})
}
