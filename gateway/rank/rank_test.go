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
		"listIssues": "list issu", "list_issues-v2": "list issu v2", "queries, Boxes & classes": "query box class",
		"HTTPServer getURL XML": "http server get url xml", "status address": "status address", "Übergröße": "übergröß", "": "",
		"execute executes executed executing execution": "execut execut execut execut execut",
		"run running commit committed call calling":     "run run commit commit call call",
		"copied modifies configuration configures":      "copy modify configur configur",
		"string bring red is ion":                       "string bring red is ion",
	} {
		if got := strings.Join(slices.Collect(rank.Words(text)), " "); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestSearch(t *testing.T) {
	var docs []rank.Document
	for _, d := range [][2]string{
		{"create_issue", "Create a new issue in a repository"},
		{"list_issues", "List the issues of a repository"},
		{"get_weather", "Tells the weather of a city. Never mentions an issue"},
		{"list_commits", "List commits of a branch in a repository"},
		{"add_labels", "Adds labels"},
		{"oncall_users", "Those on duty"},
		{"", ""},
	} {
		docs = append(docs, rank.Prepare(rank.Field{Text: d[0], Weight: 3}, rank.Field{Text: d[1], Weight: 1}))
	}
	for _, c := range []struct {
		query string
		n     int
		want  string
	}{
		{"issue", 9, "[1 0 2]"},
		{"of", 9, "[1 3 2]"}, // nothing but a filler
		{"list issues", 2, "[1 3]"},
		{"WEATHER in the city", 1, "[2]"},
		{"label", 5, "[4]"},
		{"what is that", 9, "[]"},
		{"bug tickets", 9, "[1 0 2]"},
		{"on call", 1, "[5]"},
		{"look for commits", 1, "[3]"},
		{"set up an issue", 1, "[0]"},
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
		docs := []rank.Document{rank.Prepare(rank.Field{Text: text, Weight: 1}), rank.Prepare(rank.Field{Text: query, Weight: 2}), nil}
		found := rank.Search(query, docs, 2)
		if words := slices.Collect(rank.Words(query)); len(words) > 0 && len(query) < 1024 && !slices.Contains(found, 1) {
			t.Errorf("%q does not find itself: %v", query, found)
		}
	})
}
