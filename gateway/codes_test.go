package gateway_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestErrorTexts: every code in the form of docs/pipeline.md, Errors, with all that an error can tell.
func TestErrorTexts(t *testing.T) {
	const file = "testdata/errors.txtar"
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, f := range archive.Files {
		want[f.Name] = string(f.Data)
	}
	archive.Files = nil
	for name, e := range errorsOfAllCodes() {
		text := gateway.ErrorText(e)
		archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(text)})
		if diff := cmp.Diff(want[name], text); diff != "" && os.Getenv("UPDATE") == "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
		if !strings.Contains(strings.SplitN(text, "\n", 2)[0], ": "+string(e.Code)) {
			t.Errorf("%s: the first line has no code:\n%s", name, text)
		}
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// errorsOfAllCodes yields errors in the order of docs/pipeline.md, The reply.
func errorsOfAllCodes() func(yield func(string, *stages.Error) bool) {
	later := stages.Errorf(stages.ServerUnavailable, "", `server "github": 429 Too Many Requests`)
	later.Place, later.Label, later.RetryAfter = "1", "tool github/get_issue", 90*time.Second
	refused := stages.Errorf(stages.ServerUnavailable, "", `server "github": connection refused`)
	refused.Place, refused.Label, refused.Backoff = "1", "tool github/get_issue", 195*time.Millisecond
	at := func(place, label string, e *stages.Error) *stages.Error {
		e.Place, e.Label = stages.Place(place), label
		return e
	}
	item := at("3", "tool github/get_issue", stages.Errorf(stages.ToolError, "look at the item: the numbers of issues begin with 1", "404: there is no issue 0"))
	item.Item, item.Items, item.Started, item.Done, item.Failed = 17, 40, 24, 16, 1
	item.Foreign = true // as upstream marks the words of a tool
	item.Sample = []byte(`{"number":0}`)
	item.Run, item.Resume = "r_8f3k", true
	fixed := at("2", "command jq", stages.Errorf(stages.CommandFailed, "the input is an object with items: use .items[]", "jq exited with status 5: jq: error (at <stdin>:1): expected an object but got: array ([1]) (30 times)"))
	_, fixed.Said, _ = strings.Cut(fixed.Msg, ": ") // as the sandbox marks the words of a command
	fixed.Sample, fixed.Cut = []byte(`{"items":[1,`+strings.Repeat("2,", 1000)), true
	fixed.Fix = []byte(`{"type":"command","command":"jq","args":[".items[]"]}`)
	fixed.Run, fixed.Continue = "r_8f3k", 1
	wrote := at("4", "tool shop/update_price", stages.Errorf(stages.Timeout, "find out what was changed (with a tool that reads) before another call", "the tool did not answer within 60s (limit call); it was sent and may have taken effect"))
	wrote.Changed, wrote.Sample = []string{"shop/update_price: 3"}, []byte("[1,2]")
	wrote.Run, wrote.Resume = "r_8f3k", true
	again := at("3", "tool shop/add", stages.Errorf(stages.Denied, `leave the item out, or skip it with "on_error": "skip"`, "run r_1 has called shop/add with the same arguments; it is not called again"))
	again.Item, again.Items, again.Started, again.Done, again.Failed = 3, 5, 3, 2, 1
	again.Run, again.Resume = "r_8f3k", true
	list := []struct {
		name string
		e    *stages.Error
	}{
		{"INVALID_PIPELINE", at("2", "command jq", stages.Errorf(stages.InvalidPipeline, `did you mean "args"?`, `unknown field "arg"`))},
		{"UNKNOWN_SERVER", at("1", "tool githb/get_issue", stages.Errorf(stages.UnknownServer, `did you mean "github"?`, `there is no server "githb"`))},
		{"UNKNOWN_TOOL", at("1", "tool github/get_isue", stages.Errorf(stages.UnknownTool, `did you mean "get_issue"?`, `server "github" has no tool "get_isue"`))},
		{"UNKNOWN_RUN", at("1", "from", stages.Errorf(stages.UnknownRun, "run the pipeline again, without from", `there is no run "r_x"`))},
		{"INVALID_ARGUMENTS", at("2", "tool github/get_issue", stages.Errorf(stages.InvalidArguments, "signature: get_issue(number: integer)", `number must be an integer, got "x"`))},
		{"DISALLOWED_COMMAND", at("2", "command xargs", stages.Errorf(stages.DisallowedCommand, `set "for_each": true`, `command "xargs" is not available`))},
		{"DISALLOWED_ARGUMENT", at("2", "command sort", stages.Errorf(stages.DisallowedArgument, "leave it out", "sort: -o is not available"))},
		{"TOOL_ERROR of an item, with all there is", item},
		{"SERVER_UNAVAILABLE", at("1", "tool github/get_issue", stages.Errorf(stages.ServerUnavailable, "call list_all_tools to see which servers work", `server "github": connection refused`))},
		{"SERVER_UNAVAILABLE for a while", later},
		{"SERVER_UNAVAILABLE where we wait", refused},
		{"COMMAND_FAILED with a corrected stage", fixed},
		{"TIMEOUT of a call that may have changed something", wrote},
		{"LIMIT_EXCEEDED", at("3", "for_each", stages.Errorf(stages.LimitExceeded, "filter the items before for_each", "there are more than 100000 items (limit items)"))},
		{"DENIED", at("1", "tool shop/delete", stages.Errorf(stages.Denied, "use another tool, or ask the operator", `tool "delete" of server "shop" may not be called`))},
		{"DENIED for an item that was done", again},
		{"CANCELLED", stages.Errorf(stages.Cancelled, "", "the run was cancelled; tool calls made: 3")},
		{"INTERNAL", stages.Errorf(stages.Internal, "this is a bug in the gateway; please report it", "internal error")},
	}
	return func(yield func(string, *stages.Error) bool) {
		for _, row := range list {
			if !yield(row.name, row.e) {
				return
			}
		}
	}
}
