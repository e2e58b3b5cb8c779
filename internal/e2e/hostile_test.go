//go:build linux

package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// rssLimit is how much memory the gateway may take under attack, in MiB.
const rssLimit = 300

// nested returns stages within n stages.
func nested(n int) []object {
	stages := []object{command("jq", ".")}
	for range n {
		stages = []object{{"type": "for_each", "stages": stages}}
	}
	return stages
}

func branching(n int) []object {
	stages := []object{command("jq", ".")}
	for range n {
		stages = []object{{"type": "parallel", "branches": object{"a": stages, "b": stages}}}
	}
	return stages
}

func repeated(n int, stage object) []object {
	list := make([]object, n)
	for i := range list {
		list[i] = stage
	}
	return list
}

// A hostile plan is one that somebody sends who means harm, or who does not know better.
type hostile struct {
	name     string
	pipeline any
	words    []string // of the error; none: it may also end well
}

// millionCalls is the name of the plan that runs until its time is up.
const millionCalls = "a million calls"

// seconds is the time of a plan. It is enough for the check on a slow machine.
func (h hostile) seconds() int {
	if h.name == millionCalls {
		return parttest.Times(2, 10)
	}
	return 40
}

// item calls a tool for every item.
var item = with(object{"type": "tool", "server": "odd", "name": "get_item"}, "for_each", true)

func hostilePlans() []hostile {
	huge := strings.Repeat("x", parttest.Times(1<<19, 4<<20))
	in := func(program string) []object { return []object{command("jq", "-n", program)} }
	quick := func(s object) object { return with(s, "timeout", 1) }
	return []hostile{
		{"deep for_each", nested(200), []string{"nest"}},
		{"deep parallel", branching(12), []string{"LIMIT_EXCEEDED"}},
		{"deep JSON", `[` + strings.Repeat(`{"type":"for_each","stages":[`, 20_000) + strings.Repeat(`]}`, 20_000) + `]`, []string{"INVALID_PIPELINE"}},
		{"deep arguments", `[{"type":"tool","server":"odd","name":"get_item","args":{"n":` + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + `}}]`, nil},
		{"a thousand stages", repeated(1000, command("jq", ".")), []string{"64"}},
		{"a pipeline in a string in a string", strconv.Quote(strconv.Quote(`[]`)), []string{"INVALID_PIPELINE"}},
		{"no pipeline", 5, []string{"array of stages"}},
		{"null stages", []any{nil, nil}, []string{"INVALID_PIPELINE"}},
		{"huge type", []object{{"type": huge}}, []string{"INVALID_PIPELINE"}},
		{"huge field", []object{with(command("jq", "."), huge, 1)}, []string{"INVALID_PIPELINE"}},
		{"huge server", []object{toolStage(huge, "x", object{})}, []string{"UNKNOWN_SERVER"}},
		{"huge tool", []object{toolStage("odd", huge, object{})}, []string{"UNKNOWN_TOOL"}},
		{"huge command", []object{command(huge)}, []string{"DISALLOWED_COMMAND"}},
		{"huge argument", []object{command("grep", huge)}, nil},
		{"many arguments", []object{command("tr", strings.Split(strings.Repeat("a ", 100_000), " ")...)}, []string{"DISALLOWED_ARGUMENT"}},
		{"a long program", in(strings.Repeat("1+", 500_000) + "1"), nil},
		{"a deep program", in(strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)), []string{"jq"}},
		{"a program that is not one", in(strings.Repeat("(", 1<<20)), []string{"jq"}},
		{"recursion", []object{quick(command("jq", "-n", "def f: f, f; f"))}, []string{"Stage 1 (command jq)"}},
		{"recursion that grows", []object{quick(command("jq", "-n", "def f: [f, f]; f"))}, []string{"Stage 1 (command jq)"}},
		{"a billion numbers", []object{quick(command("jq", "-n", "[range(1e9)]"))}, []string{"Stage 1 (command jq)"}},
		{"a string that doubles", []object{quick(command("jq", "-n", `def f: . + . | f; "x" | f`))}, []string{"Stage 1 (command jq)"}},
		{"a long repetition", []object{quick(command("jq", "-n", `"x" * 1e9`))}, []string{"Stage 1 (command jq)"}},
		{"endless output", []object{quick(command("jq", "-n", "repeat(1)")), command("tail", "-n", "1")}, []string{"TIMEOUT"}},
		{"a big power", []object{quick(command("bc")), command("wc")}, nil},
		{"a big power in bc", []object{command("jq", "-n", "-r", `"9^9^9"`), quick(command("bc"))}, []string{"Stage 2 (command bc)"}},
		{"a regex that backtracks", []object{command("jq", "-n", "-r", `"a" * 40`), quick(command("grep", `\(a*\)*\1b`))}, nil},
		{"a regex that repeats", []object{command("jq", "-n", "1"), quick(command("grep", "-E", "((((a{1,255}){1,255}){1,255}){1,255}){1,255}"))}, nil},
		{"a regex in jq", []object{quick(command("jq", "-n", `"a" * 30 | test("(a+)+$b")`))}, nil},
		{"an endless awk", []object{quick(command("awk", "BEGIN { while (1) s = s \"xxxxxxxxxxxxxxxx\" s }"))}, []string{"Stage 1 (command awk)"}},
		{millionCalls, []object{command("jq", "-n", "-c", "{n: range(1e6)}"), item, command("wc", "-c")}, []string{"TIMEOUT", "tool calls made: "}},
		{"huge branch", []object{{"type": "parallel", "branches": object{huge: []object{command("nothing")}}}}, []string{"DISALLOWED_COMMAND"}},
		{"a branch that is huge and right", []object{{"type": "parallel", "branches": object{huge: []object{command("jq", "-n", "1")}}}, command("wc", "-c")}, nil},
		{"fields that are left out", []object{
			command("jq", "-n", "-c", `[range(1e5) | {"key": "a long name for a field \(.)", "value": 1}] | from_entries`),
			toolStage("odd", "get_one", object{}),
		}, nil},
		{"other letters", []object{toolStage("оdd", "get_item", object{})}, []string{"UNKNOWN_SERVER"}},
		{"invisible letters", []object{toolStage("odd\u200b", "get\u202eitem", object{})}, []string{"UNKNOWN_SERVER"}},
		{"a command with a path", []object{command("../../bin/sh", "-c", "id")}, []string{"DISALLOWED_COMMAND"}},
		{"a command with NUL", []object{command("jq\x00", ".")}, []string{"DISALLOWED_COMMAND"}},
		{"an argument with NUL", []object{command("grep", "a\x00b")}, []string{"Stage 1 (command grep)"}},
		{"escapes for terminals", []object{command("\x1b]0;owned\x07")}, []string{"DISALLOWED_COMMAND"}},
	}
}

// TestHostilePlans sends plans that are meant to hurt. Each ends within its limits, the gateway stays small, and a good
// pipeline works after each.
func TestHostilePlans(t *testing.T) {
	t.Parallel()
	p, url := serveHTTP(t, object{"odd": child(t, "odd")})
	session := connectHTTP(t, url, versions[1], nil)
	for _, plan := range hostilePlans() {
		t.Run(plan.name, func(t *testing.T) {
			send(t, session, plan, "check")
			res := send(t, session, plan, "run")
			text := textOf(res)
			if plan.words != nil && !res.IsError {
				t.Errorf("it ended well: %q", clip(text))
			}
			for _, want := range plan.words {
				if !strings.Contains(text, want) {
					t.Errorf("%q does not say %q", clip(text), want)
				}
			}
			if got := mustExecute(t, session, command("jq", "-n", "-c", "{n: 7}"), item, command("jq", "-c", ".")); got != "[{\"item\":7}]\n" {
				t.Errorf("afterwards: got %q", got)
			}
		})
	}
	if got := p.memory(t); got > rssLimit {
		t.Errorf("the gateway took %d MiB, want at most %d", got, rssLimit)
	}
}

// send sends a plan. The reply comes in time, is not long, and does nothing to a terminal.
func send(t *testing.T, session *mcp.ClientSession, plan hostile, mode string) *mcp.CallToolResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	res, err := session.CallTool(ctx, &mcp.CallToolParams{
		Name: "execute_pipeline", Arguments: object{"pipeline": plan.pipeline, "mode": mode, "timeout": plan.seconds()},
	})
	if err != nil {
		t.Fatalf("calling execute_pipeline: %v", err)
	}
	text := textOf(res)
	if len(text) > 40_000 {
		t.Errorf("the reply to %s has %d bytes: %q", mode, len(text), clip(text))
	}
	if whole := encode(t, res); len(whole) > 100_000 {
		t.Errorf("the reply to %s has %d bytes with what is beside the text", mode, len(whole))
	}
	if res.IsError && strings.ContainsAny(text, "\x00\x1b\u200b\u202e") {
		t.Errorf("the reply to %s holds characters that do not print: %q", mode, clip(text))
	}
	return res
}

// lastWords returns the beginning of the crash of a process, or the end of what it has written.
func (p *process) lastWords() string {
	text := p.stderr.String()
	for _, crash := range []string{"runtime: ", "fatal error: ", "panic: "} {
		if i := strings.Index(text, "\n"+crash); i >= 0 {
			return clip(text[i+1:])
		}
	}
	return clip(text[max(0, len(text)-4000):])
}

// memory returns how many MiB the process itself took at most.
func (p *process) memory(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), "VmHWM:")
	var kb int
	if _, err := fmt.Sscan(after, &kb); !ok || err != nil {
		t.Fatalf("it has ended: %s", p.lastWords())
	}
	return kb >> 10
}
