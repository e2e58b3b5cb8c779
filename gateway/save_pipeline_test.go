package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/store/storetest"
)

// laterTools are tools that are there once the world is.
type laterTools struct{ stages.Tools }

func unchanged() uint64 { return 0 }

// newSaving serves a gateway whose callers save pipelines, to alice and bob.
func newSaving(t *testing.T) (*guarded, *pipelines.Store) {
	t.Helper()
	store := pipelines.NewStore(t.TempDir())
	return newSavingIn(t, store), store
}

func newSavingIn(t *testing.T, store *pipelines.Store) *guarded {
	t.Helper()
	tools := &laterTools{}
	set := pipelines.NewSet(store, stages.Deps{Tools: tools, Commands: sharedSandbox(t), Schemas: schemas.Stages()}, unchanged)
	g := newGuarded(t, gateway.Options{Pipelines: set, AllowSave: true})
	tools.Tools = g.pool
	return g
}

// ask calls a tool and returns the texts of its reply as one.
func ask(t *testing.T, agent *mcp.ClientSession, tool, arguments string) (text string, failed bool) {
	t.Helper()
	result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	for _, block := range result.Content {
		text += block.(*mcp.TextContent).Text + "\n"
	}
	return text, result.IsError
}

const itemNames = `[{"type":"tool","server":"shop","name":"get_item","args":{"id":1}},{"type":"command","command":"jq","args":["-r",".name"]}]`

// TestSavePipeline: an agent saves what it has run, and calls it later; another caller has nothing of it until a person adopts it.
// Then it finds it by words and calls it.
func TestSavePipeline(t *testing.T) {
	for i, era := range eras {
		g, store := newSaving(t)
		alice, again, bob := g.as(t, "alice", era), g.as(t, "alice", eras[1-i]), g.as(t, "bob", era)
		_, run := pipe(t, alice, itemNames)
		saved, failed := ask(t, alice, "save_pipeline", `{"name":"item_name","description":"The name of an article in the shop","run":"`+run+
			`","parameters":{"id":{"stage":1,"arg":"id","description":"of the article"}}}`)
		if failed || !strings.Contains(saved, "Saved as item_name, version 1. Only you see it") || !strings.Contains(saved, "mcsh pipeline adopt item_name") {
			t.Fatalf("%s: got %s", era, saved)
		}
		stage := saved[strings.Index(saved, "{") : strings.LastIndex(saved, "}")+1]
		if text, _ := pipe(t, alice, "["+stage+"]"); text != "item 1\n" {
			t.Errorf("%s: the stage %s of the reply gives %q", era, stage, text)
		}
		const call = `[{"type":"tool","server":"pipelines","name":"item_name","args":{"id":7}}]`
		if text, _ := pipe(t, again, call); text != "item 7\n" {
			t.Errorf("%s: in another session the same caller has %q", era, text)
		}
		if text, _ := ask(t, again, "list_all_tools", `{"query":"article name"}`); !strings.Contains(text, "pipelines/item_name") || !strings.Contains(text, "only for you") {
			t.Errorf("%s: the caller finds %s", era, text)
		}
		if text, _ := ask(t, again, "get_tool_details", `{"server":"pipelines","tool_name":"item_name"}`); !strings.Contains(text, "version 1,") || !strings.Contains(text, `its stages: [{"type":"tool"`) {
			t.Errorf("%s: the caller sees %s", era, text)
		}
		if text, _ := pipe(t, bob, call); !strings.Contains(text, "UNKNOWN_") {
			t.Errorf("%s: another caller gets %q", era, text)
		}
		for tool, arguments := range map[string]string{"list_all_tools": `{"query":"article name"}`, "get_tool_details": `{"server":"pipelines","tool_name":"item_name"}`} {
			if text, _ := ask(t, bob, tool, arguments); strings.Contains(text, "article in the shop") {
				t.Errorf("%s: another caller sees %s", era, text)
			}
		}
		if _, err := store.Adopt(t.Context(), "item_name", pipelines.Any); err != nil {
			t.Fatal(err)
		}
		if text, _ := ask(t, bob, "list_all_tools", `{"query":"article name"}`); !strings.Contains(text, "pipelines/item_name(id? = 1)") || strings.Contains(text, "only for you") {
			t.Errorf("%s: another caller finds %s", era, text)
		}
		if text, _ := pipe(t, bob, call); text != "item 7\n" {
			t.Errorf("%s: another caller has %q of what was adopted", era, text)
		}
	}
}

// TestSavedVersions: an agent adds versions to its own, from the one that it has seen, and changes nothing of others.
func TestSavedVersions(t *testing.T) {
	g, store := newSaving(t)
	alice, bob := g.as(t, "alice", eras[0]), g.as(t, "bob", eras[1])
	save := func(agent *mcp.ClientSession, name, more string) (string, bool) {
		t.Helper()
		return ask(t, agent, "save_pipeline", fmt.Sprintf(`{"name":%q,"description":"d"%s}`, name, more))
	}
	const one, two = `,"pipeline":[{"type":"command","command":"jq","args":["-n","1"]}]`, `,"pipeline":[{"type":"command","command":"jq","args":["-n","2"]}]`
	person := []byte(`{"description": "of a person", "pipeline": [{"type": "command", "command": "jq", "args": ["-n", "0"]}]}`)
	for _, name := range []string{"theirs", "overwritten"} {
		if _, err := store.Save(t.Context(), name, person, 0, pipelines.Author{}); err != nil {
			t.Fatal(err)
		}
	}
	if text, failed := save(alice, "mine", one); failed {
		t.Fatal(text)
	}
	for _, test := range []struct {
		who              *mcp.ClientSession
		name, more, want string
	}{
		{alice, "mine", two, `give "version": 1`},
		{alice, "mine", two + `,"version":2`, "it is at version 1"},
		{alice, "mine", two + `,"version":1`, "Saved as mine, version 2"},
		{alice, "mine", one + `,"version":1`, "it is at version 2"}, // the loser of two writers
		{alice, "new", one + `,"version":1`, "leave version out"},
		{bob, "mine", one, `the name "mine" is taken`},
		{bob, "mine", one + `,"version":2`, `the name "mine" is taken`},
		{alice, "theirs", one, `the name "theirs" is taken`},
		{alice, "theirs", one + `,"version":1`, `the name "theirs" is taken`},
	} {
		if text, _ := save(test.who, test.name, test.more); !strings.Contains(text, test.want) || strings.Contains(text, "of a person") {
			t.Errorf("%s%s: got %s, want %s", test.name, test.more, text, test.want)
		}
	}
	if _, err := store.Adopt(t.Context(), "mine", pipelines.Any); err != nil {
		t.Fatal(err)
	}
	if text, failed := save(alice, "mine", one+`,"version":2`); !failed || !strings.Contains(text, "is taken") {
		t.Errorf("what a person has adopted changes: %s", text)
	}
	left, err := os.ReadFile(filepath.Join(store.Places()[0], "theirs.json"))
	if err != nil || string(left) != string(person) {
		t.Errorf("the file of a person is %s, %v", left, err)
	}
}

// TestSaveMistakes: what is wrong is refused with a hint by which the next try is right, and leaves nothing behind.
func TestSaveMistakes(t *testing.T) {
	t.Parallel()
	g, store := newSaving(t)
	alice, bob := g.as(t, "alice", eras[0]), g.as(t, "bob", eras[0])
	_, run := pipe(t, alice, itemNames)
	_, others := pipe(t, bob, itemNames)
	_, from := pipe(t, alice, `[{"type":"from","run":"`+run+`"},{"type":"command","command":"jq","args":["."]}]`)
	for _, test := range []struct{ arguments, want, hint string }{
		{`{}`, `cannot be the name`, "open_by_team"},
		{`{"name":"a","description":"d"}`, "either run or pipeline", `"run": "r_..."`},
		{`{"name":"a","description":"d","run":"` + run + `","pipeline":[]}`, "either run or pipeline", ""},
		{`{"name":"a","description":"d","run":"r_none"}`, "UNKNOWN_RUN", ""},
		{`{"name":"a","description":"d","run":"` + others + `"}`, "UNKNOWN_RUN", ""}, // as unknown as none
		{`{"name":"a","description":"d","run":"` + from + `"}`, "begins with what an earlier run has left", "save the run"},
		{`{"name":"a","run":"` + run + `"}`, "description: it is empty", ""},
		{`{"name":"a","desc":"d","run":"` + run + `"}`, `unknown argument "desc"`, `did you mean "description"?`},
		{`{"name":"../a","description":"d","run":"` + run + `"}`, "cannot be the name", ""},
		{`{"name":"a/../../b","description":"d","run":"` + run + `"}`, "cannot be the name", ""},
		{`{"name":".versions","description":"d","run":"` + run + `"}`, "cannot be the name", ""},
		{`{"name":"A","description":"d","run":"` + run + `"}`, "cannot be the name", ""},
		{`{"name":"ａ","description":"d","run":"` + run + `"}`, "cannot be the name", ""},
		{`{"name":"a\u0000","description":"d","run":"` + run + `"}`, "cannot be the name", ""},
		{`{"name":"` + strings.Repeat("a", 49) + `","description":"d","run":"` + run + `"}`, "at most 48", ""},
		{`{"name":"execute_pipeline","description":"d","run":"` + run + `"}`, "a tool of the gateway itself", ""},
		{`{"name":"a","description":"` + strings.Repeat("x", 1<<20) + `","run":"` + run + `"}`, "larger than 256 KiB", ""},
		{`{"name":"a","description":"` + strings.Repeat("x", 1<<14) + `","run":"` + run + `"}`, "description: it has 16384 bytes", ""},
		{`{"name":"a","description":"d","run":"` + run + `","parameters":{"id":{"stage":1,"arg":"ID"}}}`, `stage 1 has no argument "ID"`, `"id"`},
		{`{"name":"a","description":"d","run":"` + run + `","parameters":{"p":{"stage":2,"arg":".name"}}}`, "program", ""},
		{`{"name":"a","description":"d","run":"` + run + `","parameters":{"id":{"stage":1,"arg":"id","enum":["a"]}}}`, "default is not allowed", ""},
		{`{"name":"a","description":"d","pipeline":[{"type":"tool","server":"shop","name":"get_itm","args":{"id":1}}]}`, "UNKNOWN_TOOL", `did you mean "get_item"?`},
		{`{"name":"a","description":"d","pipeline":[{"type":"tool","server":"pipelines","name":"a"}]}`, "calls itself", ""},
		{`{"name":"a","description":"d","pipeline":[{"type":"tool","server":"shop","name":"get_item","args":{"id":{"$param":"x"}}}]}`, `"x" is used and not declared`, ""},
		{`{"name":"a","description":"d","pipeline":` + itemNames + `,"parameters":{"x":{"type":"string"}}}`, "declared and not used", ""},
	} {
		text, failed := ask(t, alice, "save_pipeline", test.arguments)
		if !failed || !strings.Contains(text, test.want) || !strings.Contains(text, test.hint) || strings.Contains(text, store.Places()[0]) || strings.Contains(text, "mcsh pipeline show") {
			t.Errorf("%.300s: got %.900s, want %s; %s", test.arguments, text, test.want, test.hint)
		}
	}
	if list, err := store.List(t.Context()); len(list) > 0 || err != nil {
		t.Errorf("saved are %v, %v", list, err)
	}
}

// TestSaveShared: an agent saves a pipeline on one gateway and calls it on another at once. Another caller has it when a person has
// adopted it there.
func TestSaveShared(t *testing.T) {
	objects := storetest.Directory(t)
	t.Cleanup(func() {
		if err := objects.Close(); err != nil {
			t.Error(err)
		}
	})
	first, second := pipelines.NewSharedStore(objects), pipelines.NewSharedStore(objects)
	here, there := newSavingIn(t, first), newSavingIn(t, second)
	if list, err := second.List(t.Context()); err != nil || len(list) != 0 { // it has read the store before
		t.Fatal(list, err)
	}
	if text, failed := ask(t, here.as(t, "alice", eras[0]), "save_pipeline", `{"name":"item_name","description":"d","pipeline":`+itemNames+`}`); failed {
		t.Fatal(text)
	}
	const call = `[{"type":"tool","server":"pipelines","name":"item_name"}]`
	alice, bob := there.as(t, "alice", eras[1]), there.as(t, "bob", eras[0])
	if text, _ := pipe(t, alice, call); text != "item 1\n" {
		t.Errorf("its caller gets %q", text)
	}
	if text, _ := pipe(t, bob, call); !strings.Contains(text, "UNKNOWN_") {
		t.Errorf("another caller gets %q", text)
	}
	if _, err := second.Adopt(t.Context(), "item_name", 1); err != nil {
		t.Fatal(err)
	}
	if text, _ := pipe(t, bob, call); text != "item 1\n" {
		t.Errorf("another caller gets %q of what was adopted", text)
	}
	if text, failed := ask(t, here.as(t, "alice", eras[1]), "save_pipeline", `{"name":"item_name","version":1,"description":"e","pipeline":`+itemNames+`}`); !failed || !strings.Contains(text, "is taken") {
		t.Errorf("replacing what was adopted on another gateway: %s", text)
	}
}

// TestSaveStoreDown: an agent is told that nothing was saved when the store that gateways share fails, and nothing of the store.
func TestSaveStoreDown(t *testing.T) {
	objects := storetest.Directory(t)
	saved := pipelines.NewSharedStore(objects)
	if _, err := saved.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	alice := newSavingIn(t, saved).as(t, "alice", eras[0])
	if err := objects.Close(); err != nil {
		t.Fatal(err)
	}
	text, failed := ask(t, alice, "save_pipeline", `{"name":"a","description":"d","pipeline":[{"type":"preview"}]}`)
	if !failed || !strings.Contains(text, "SERVER_UNAVAILABLE") || !strings.Contains(text, "nothing was saved") || strings.Contains(text, "closed") {
		t.Errorf("got %s", text)
	}
}

// TestSaveMost: an agent cannot save without end.
func TestSaveMost(t *testing.T) {
	t.Parallel()
	g, _ := newSaving(t)
	alice := g.as(t, "alice", eras[0])
	for i := range pipelines.MaxPrivate + 1 {
		text, failed := ask(t, alice, "save_pipeline", fmt.Sprintf(`{"name":"p%d","description":"d","pipeline":[{"type":"preview"}]}`, i))
		if failed != (i == pipelines.MaxPrivate) || failed && !strings.Contains(text, "LIMIT_EXCEEDED") {
			t.Fatalf("number %d: %s", i+1, text)
		}
	}
}

// TestSaveAnonymous: a caller that nobody can tell from others is shown no tool to save with, and saves nothing. The one client on
// standard input and output, and a caller with an identity, have the tool. A gateway that does not allow it has no such tool.
func TestSaveAnonymous(t *testing.T) {
	t.Parallel()
	set := pipelines.NewSet(pipelines.NewStore(t.TempDir()), stages.Deps{}, unchanged)
	lists := func(agent *mcp.ClientSession) bool {
		list, err := agent.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list.Tools, func(tool *mcp.Tool) bool { return tool.Name == "save_pipeline" })
	}
	for _, allowed := range []bool{true, false} {
		g := gateway.New(gateway.Options{Upstream: newWorld(t).pool, Pipelines: set, AllowSave: allowed, Version: "test"})
		if listed := lists(connect(t, g, newClient())); listed != allowed {
			t.Errorf("allowed %v: over stdio it is listed: %v", allowed, listed)
		}
		server := httptest.NewServer(g.Handler())
		defer server.Close()
		for _, era := range eras {
			agent, err := newClient().Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL + "/mcp", MaxRetries: -1, DisableStandaloneSSE: true},
				&mcp.ClientSessionOptions{ProtocolVersion: era})
			if err != nil {
				t.Fatal(err)
			}
			if lists(agent) {
				t.Errorf("allowed %v, %s: it is listed to everybody", allowed, era)
			}
			result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "save_pipeline", Arguments: json.RawMessage(`{"name":"a","description":"d","pipeline":[{"type":"preview"}]}`)})
			if allowed && (err != nil || !result.IsError || !strings.Contains(fmt.Sprint(result.Content[0].(*mcp.TextContent).Text), "does not know who calls")) {
				t.Errorf("got %+v, %v", result, err)
			} else if !allowed && err == nil {
				t.Errorf("got %+v of a tool that is not there", result)
			}
			agent.Close()
		}
	}
	saving, _ := newSaving(t)
	for _, era := range eras {
		if !lists(saving.as(t, "alice", era)) {
			t.Errorf("%s: it is not listed to a caller with an identity", era)
		}
	}
}

// TestSaveResumed: a run that goes on with an earlier one is saved as the whole plan.
func TestSaveResumed(t *testing.T) {
	g, store := newSaving(t)
	alice := g.as(t, "alice", eras[0])
	ids := regexp.MustCompile(`r_[a-z0-9]{8,}`)
	last := func(pipeline string) string {
		t.Helper()
		text, _ := ask(t, alice, "execute_pipeline", `{"pipeline":`+pipeline+`}`)
		found := ids.FindAllString(text, -1)
		if found == nil {
			t.Fatalf("no run in %s", text)
		}
		return found[len(found)-1]
	}
	first := last(`[{"type":"tool","server":"shop","name":"get_item","args":{"id":1}},{"type":"command","command":"jq","args":["error(\"not yet\")"]}]`)
	resumed := last(`[{"type":"from","run":"` + first + `","resume":true}]`)
	if resumed == first {
		t.Fatalf("%s goes on with itself", first)
	}
	if text, failed := ask(t, alice, "save_pipeline", `{"name":"whole","description":"d","run":"`+resumed+`","parameters":{"id":{"stage":1,"arg":"id"}}}`); failed {
		t.Fatalf("got %s", text)
	}
	p, err := store.Get(t.Context(), "whole", pipelines.Everybody)
	if want := `[{"type":"tool","server":"shop","name":"get_item","args":{"id":{"$param":"id"}}},{"type":"command","command":"jq","args":["error(\"not yet\")"]}]`; err != nil || string(p.Definition.Pipeline) != want {
		t.Errorf("got %+v, %v", p, err)
	}
}
