package cli

import (
	"testing"

	"github.com/mcsh-dev/mcsh/stages"
)

// TestAtTerminal: a person is not sent to the tools of agents, and the words of a tool stay as they are.
func TestAtTerminal(t *testing.T) {
	for _, c := range []struct {
		e         stages.Error
		msg, hint string
	}{
		{
			stages.Error{Code: stages.UnknownServer, Msg: "there is no server", Hint: "call list_all_tools; there are x"},
			"there is no server", "see mcsh tools ls; there are x",
		},
		{
			stages.Error{Code: stages.Timeout, Msg: `the run took longer than 1s (the argument "timeout")`, Hint: `raise the argument "timeout"`},
			"the run took longer than 1s (--timeout)", "raise --timeout",
		},
		{
			stages.Error{Code: stages.ToolError, Msg: "use list_all_tools", Hint: "get_tool_details shows it"},
			"use list_all_tools", "mcsh tools show shows it",
		},
	} {
		if own := forCommandLine(&c.e); own.Msg != c.msg || own.Hint != c.hint {
			t.Errorf("got %q, %q, want %q, %q", own.Msg, own.Hint, c.msg, c.hint)
		}
	}
}
