package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestProposeReadOnly: tools of real servers without annotations, in the words of their lists.
func TestProposeReadOnly(t *testing.T) {
	var tools []upstream.CatalogTool
	var want []string
	for _, c := range []struct {
		name, description string
		reads             bool
	}{
		{"git_status", "Shows the working tree status", true},
		{"git_diff_staged", "Shows changes that are staged for commit", true},
		{"git_log", "Shows the commit logs", true},
		{"git_branch", "List Git branches", true},
		{"git_commit", "Records changes to the repository", false},
		{"git_add", "Adds file contents to the staging area", false},
		{"git_reset", "Unstages all staged changes", false},
		{"git_create_branch", "Creates a new branch from an optional base branch", false},
		{"git_checkout", "Switches branches", false},
		{"read_query", "Execute a SELECT query on the SQLite database", true},
		{"write_query", "Execute an INSERT, UPDATE, or DELETE query on the SQLite database", false},
		{"create_table", "Create a new table in the SQLite database", false},
		{"list_tables", "List all tables in the SQLite database", true},
		{"append_insight", "Add a business insight to the memo", false},
		{"get_current_time", "Get current time in a specific timezones", true},
		{"convert_time", "Convert time between timezones", true},
		{"getOrCreateUser", "Gets a user", false},
		{"echo", "Echoes back the input string", false},
		{"sequentialthinking", "A detailed tool for dynamic and reflective problem-solving through thoughts.", false},
		{"notify", "Sends a message, then returns its id", false},
		{"lookup", "Returns the record and marks it as read", false},
		{"unannotated", "", false},
	} {
		tools = append(tools, upstream.CatalogTool{Name: c.name, Description: c.description})
		if c.reads {
			want = append(want, c.name)
		}
	}
	tools = append(tools, upstream.CatalogTool{Name: "get_known", Tool: stages.Tool{Annotated: true}})
	got, unannotated := readOnlyTools(tools)
	if diff := cmp.Diff(want, got); diff != "" || unannotated != len(tools)-1 {
		t.Errorf("%d without annotations (-want +got):\n%s", unannotated, diff)
	}
	finds := []finding{{
		Status: statusNote, Text: "time: 2 tools without annotations count as tools that may change something: a dry run stops before them",
		Hint: `if these only read, as their names and descriptions suggest, add "readOnly": ["get_time"] to the server`,
	}}
	var d diagnosis
	d.proposeReadOnly("time", []upstream.CatalogTool{{Name: "get_time"}, {Name: "x"}})
	if diff := cmp.Diff(finds, d.findings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
