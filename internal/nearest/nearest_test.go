package nearest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/internal/nearest"
)

func TestName(t *testing.T) {
	fields := []string{"server", "name", "args", "paginate", "for_each", "concurrency", "timeout"}
	tools := []string{"get_issue", "list_issues", "create_issue", "search_code", "echo", "API-get-user"}
	for _, tt := range []struct {
		word  string
		known []string
		want  string
	}{
		{"argz", fields, "args"},
		{"sevrer", fields, "server"},
		{"forEach", fields, "for_each"},
		{"for-each", fields, "for_each"},
		{"concurency", fields, "concurrency"},
		{"Name", fields, "name"},
		{"name", fields, "name"},
		{"time_out", fields, "timeout"},
		{"getIssue", tools, "get_issue"},
		{"issue_get", tools, "get_issue"},
		{"issues", tools, "list_issues"},
		{"api_get_user", tools, "API-get-user"},
		{"ehco", tools, "echo"},
		{"x", fields, ""},
		{"", fields, ""},
		{"colour", fields, ""},
		{"jq", []string{"sq", "jj", "awk"}, "sq"},
		{strings.Repeat("a", 4096), []string{strings.Repeat("a", 4095)}, ""},
		{"größe", []string{"grösse", "groesse"}, "grösse"},
		{"word", nil, ""},
	} {
		if got := nearest.Name(tt.word, tt.known); got != tt.want {
			t.Errorf("Name(%q) = %q, want %q", tt.word, got, tt.want)
		}
	}
}

func TestList(t *testing.T) {
	known := []string{"list_issues", "get_issue", "get_issues", "create_issue", "get_issue"}
	got := nearest.List("get_isue", known, 3)
	if diff := cmp.Diff([]string{"get_issue", "get_issues"}, got[:2]); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
	if got := nearest.List("get_issue", known, 0); got != nil {
		t.Errorf("List with n = 0 gives %q, want nothing", got)
	}
	if got := nearest.List("get_issue", known, 9); got[0] != "get_issue" {
		t.Errorf("List of a known word begins with %q, want the word itself", got[0])
	}
}

func FuzzList(f *testing.F) {
	f.Add("get_isue", "get_issue", "list")
	f.Add("\xff", "", "é")
	f.Fuzz(func(t *testing.T, word, a, b string) {
		for _, got := range nearest.List(word, []string{a, b}, 2) {
			if got != a && got != b {
				t.Errorf("List(%q) made up %q", word, got)
			}
		}
	})
}
