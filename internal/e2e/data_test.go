//go:build linux

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// bigLimit is how much memory mcsh may take for a result of 50 MB, in MiB: some copies of it, and what the collector
// of garbage is behind.
const bigLimit = 600

// TestBigResults reduces a result of 10 MB, of 50 MB at night.
func TestBigResults(t *testing.T) {
	t.Parallel()
	servers := object{"odd": child(t, "odd")}
	bulk := toolStage("odd", "bulk", object{"mb": parttest.Times(10, 50)})
	ids, limits, tooBig := "0\n100000\n", "call=5m,result=8MiB", 10
	if parttest.Night() {
		ids, limits, tooBig = ids+"200000\n300000\n400000\n500000\n", "call=5m", 70
	}
	g := serveStdio(t, servers, versions[1], nil, "--limit", "call=5m")
	for _, test := range []struct {
		name     string
		pipeline []object
		want     string
	}{
		{"jq", []object{bulk, command("jq", "-c", "select(.id % 100000 == 0) | .id")}, ids},
		{"head", []object{bulk, command("head", "-n", "2"), command("jq", ".id")}, "0\n1\n"},
		{"wc", []object{bulk, command("wc", "-l")}, "505192\n"},
	} {
		if test.name == "wc" && !parttest.Night() {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			if got := mustExecute(t, g.ClientSession, test.pipeline...); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	most := parttest.Times(bigLimit/3, bigLimit)
	if got := g.memory(t); got > most {
		t.Errorf("the gateway took %d MiB, want at most %d", got, most)
	} else {
		t.Logf("the gateway took %d MiB", got)
	}
	t.Run("too big", func(t *testing.T) {
		t.Parallel()
		r := mcsh(t, servers, "run", "--limit", limits, encode(t, []object{toolStage("odd", "bulk", object{"mb": tooBig}), command("wc", "-l")})).run(t)
		wantWords(t, r, "Stage 1 (tool odd/bulk) failed: LIMIT_EXCEEDED", "Try: ask the tool for less")
	})
}

// wantWords checks that a pipeline failed and says certain words.
func wantWords(t *testing.T, r result, words ...string) {
	t.Helper()
	for _, want := range words {
		if r.status == 0 || !strings.Contains(r.stderr, want) {
			t.Errorf("status %d; %q does not say %q", r.status, clip(r.stderr), want)
		}
	}
}

// clip shortens what a test shows.
func clip(s string) string {
	if len(s) > 3000 {
		return s[:3000] + "..."
	}
	return s
}

// TestOddResults passes on what is odd but right, and refuses what is wrong, saying what.
func TestOddResults(t *testing.T) {
	t.Parallel()
	g := serveStdio(t, object{"odd": child(t, "odd")}, versions[1], nil)
	text := func(literal string) string { return `{"content":[{"type":"text","text":` + literal + `}]}` }
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, test := range []struct {
		name, result string
		then         []object
		want         string   // of the output
		wrong        []string // or words of the error
	}{
		{name: "NUL", result: text(`"a\u0000b"`), want: "a\u0000b"},
		{name: "NUL to jq", result: text(`"a\u0000b"`), then: []object{command("jq", "-R", "-c", "explode")}, want: "[97,0,98]\n"},
		{name: "half a pair", result: text(`"a\ud800b"`), want: "a\uFFFDb"},
		{name: "bytes that are no UTF-8", result: text("\"a\xffb\""), want: "a\uFFFDb"},
		{name: "a line separator", result: text(`"a\u2028b"`), want: "a\u2028b"},
		{name: "empty text", result: text(`""`), want: ""},
		{name: "no content", result: `{"content":[]}`, want: ""},
		{name: "big numbers", result: `{"content":[],"structuredContent":{"id":123456789012345678901234567890,"x":1e400}}`, want: `{"id":123456789012345678901234567890,"x":1e400}`},
		{name: "deep structure", result: `{"content":[],"structuredContent":{"a":` + deep(500) + `}}`, then: []object{command("jq", "[.. | arrays] | length")}, want: "500\n"},
		{name: "deep text", result: text(`"` + deep(5000) + `"`), then: []object{command("wc", "-c")}, want: "10000\n"},
		{name: "deeper than jq goes", result: text(`"` + deep(100_000) + `"`), then: []object{command("jq", "-c", ".")}, wrong: []string{"Stage 2 (command jq) failed", "more than 10000 arrays and objects inside of one another"}},
		{name: "a key twice", result: `{"content":[],"structuredContent":{"a":1,"a":2}}`, then: []object{command("jq", "-c", ".")}, want: "{\"a\":2}\n"},
		{name: "its own error", result: `{"isError":true,"content":[{"type":"text","text":"no such thing"}]}`, wrong: []string{"TOOL_ERROR", "no such thing"}},
		{name: "an unknown block", result: `{"content":[{"type":"hologram","data":"x"}]}`, then: []object{command("jq", "-r", ".type")}, want: "hologram\n"},
		{name: "content that is no array", result: `{"content":"x"}`, want: "x"},
		{name: "no result", result: `[]`, wrong: []string{"Stage 1 (tool odd/raw) failed", "TOOL_ERROR"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			pipeline := append([]object{toolStage("odd", "raw", object{"result": test.result})}, test.then...)
			if strings.Contains(test.result, "\xff") { // a pipeline cannot hold it
				pipeline[0] = toolStage("odd", "raw", object{"result": strings.ReplaceAll(test.result, "\xff", "%FF")})
			}
			got, failed := execute(t, g.ClientSession, pipeline...)
			if failed != (test.wrong != nil) || !failed && got != test.want {
				t.Errorf("got %q (failed: %v), want %q", clip(got), failed, clip(test.want))
			}
			for _, want := range test.wrong {
				if !strings.Contains(got, want) {
					t.Errorf("%q does not say %q", clip(got), want)
				}
			}
		})
	}
}

// TestManyItems calls a tool a thousand times, ten thousand at night, in order.
func TestManyItems(t *testing.T) {
	t.Parallel()
	n := parttest.Times(1000, 10_000)
	got := must(t, object{"odd": child(t, "odd")},
		command("jq", "-n", "-c", fmt.Sprintf("{n: range(%d)}", n)),
		with(object{"type": "tool", "server": "odd", "name": "get_item"}, "for_each", true),
		command("jq", "-c", fmt.Sprintf("[length, (map(.item) == [range(%d)]), .[%d].item]", n, n-1)))
	if want := fmt.Sprintf("[%d,true,%d]\n", n, n-1); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestIndentedItems gives a server that reads lines items as people write them, over several lines each.
func TestIndentedItems(t *testing.T) {
	t.Parallel()
	memory := with(nodeServer(t, "@modelcontextprotocol/server-memory"), "env", object{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.json")})
	got := must(t, object{"memory": memory},
		command("jq", "-n", `["a", "b"] | map({entities: [{name: ., entityType: "letter", observations: ["it is", "a letter"]}]})`),
		with(object{"type": "tool", "server": "memory", "name": "create_entities", "timeout": 20}, "for_each", true),
		command("jq", "-c", "map(.entities[].name)"))
	if want := `["a","b"]` + "\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestBrokenServers has servers that cannot be talked to: the message says what they did and what to do.
func TestBrokenServers(t *testing.T) {
	t.Parallel()
	shell := func(script string) object {
		return object{"command": "sh", "args": []string{"-c", script}, "startTimeout": "15s", "protocol": "2025-11-25"}
	}
	for _, test := range []struct {
		name   string
		server object
		words  []string
	}{
		{"dies at start", shell("echo 'TOKEN is not set' >&2; exit 3"), []string{"exit status 3", "last on standard error: TOKEN is not set"}},
		{"dies without a word", shell("exit 0"), []string{"ended after", "wrote nothing to standard error"}},
		{"killed at start", shell("kill -9 $$$$"), []string{"signal: killed"}},
		{"no such command", object{"command": "npxx-of-nobody"}, []string{`"npxx-of-nobody" not found in PATH`, "mcp.json:1"}},
		{"no permission", object{"command": "/etc/passwd"}, []string{"/etc/passwd", "is not executable"}},
		{"garbage", shell("echo garbage; echo more >&2; exit 1"), []string{"exit status 1", "last on standard error: more"}},
		{"garbage and silence", shell("while read -r l; do echo 'what?'; done"), []string{"runs but does not answer", `not MCP messages (ignored), the first: "what?"`}},
		{"hangs", shell("echo waiting for the database >&2; while read -r l; do :; done"), []string{"runs but does not answer", "set startTimeout for it (15s now)", "last on standard error: waiting for the database"}},
		{"nobody listens", object{"url": "http://127.0.0.1:1/mcp"}, []string{"nothing listens on 127.0.0.1:1", "start the server"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := runPipeline(t, object{"s": test.server}, toolStage("s", "x", object{}))
			if r.status != 4 {
				t.Errorf("exit status %d, want 4", r.status)
			}
			wantWords(t, r, append(test.words, "SERVER_UNAVAILABLE", `"s"`, "Try: ")...)
		})
	}
}

// TestBrokenServerStaysApart has a broken server beside a good one, which does not suffer.
func TestBrokenServerStaysApart(t *testing.T) {
	t.Parallel()
	servers := object{"odd": child(t, "odd"), "hangs": object{"command": "sleep", "args": []string{"600"}}}
	g := serveStdio(t, servers, versions[1], nil)
	for i := range 3 {
		if got, want := mustExecute(t, g.ClientSession, toolStage("odd", "get_item", object{"n": i})), fmt.Sprintf(`{"item":%d}`, i); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
