package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/runs"
)

// newKeptWorld is a world whose gateway keeps runs, with a tool whose result is long.
func newKeptWorld(t testing.TB, o runs.Options) *world {
	t.Helper()
	o.Dir = t.TempDir()
	store := runs.New(o)
	t.Cleanup(func() { store.Close() })
	return newWorldThat(t, store, mcptest.Tool{
		Name: "dump", ReadOnly: true, Schema: `{"type":"object","properties":{"lines":{"type":"integer"}},"required":["lines"]}`,
		Raw: func(_ context.Context, args json.RawMessage) (string, error) {
			var a struct{ Lines int }
			if err := json.Unmarshal(args, &a); err != nil {
				return "", err
			}
			return `{"content":[{"type":"text","text":"` + strings.ReplaceAll(dump(a.Lines), "\n", `\n`) + `"}]}`, nil
		},
	})
}

// dump is a text of lines of 50 bytes.
func dump(lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "line %08d é日🙂 %s\n", i, "abcdefghijklmnopqrstuvwx")
	}
	return b.String()
}

func dumpStage(lines int) string {
	return fmt.Sprintf(`{"type":"tool","server":"shop","name":"dump","args":{"lines":%d}}`, lines)
}

var runID = regexp.MustCompile(`r_[a-z2-7]{26}`)

// linkOf returns the resource that a reply links to.
func linkOf(t testing.TB, result *mcp.CallToolResult) *mcp.ResourceLink {
	t.Helper()
	for _, c := range result.Content {
		if link, ok := c.(*mcp.ResourceLink); ok {
			return link
		}
	}
	t.Fatalf("the reply links to nothing: %+v", result.Content)
	return nil
}

// readAll reads a resource page by page.
func readAll(t testing.TB, agent *mcp.ClientSession, uri string) (all []byte, pages, blobs int) {
	t.Helper()
	for uri != "" {
		res, err := agent.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil || len(res.Contents) != 1 {
			t.Fatalf("reading %s: %v", uri, err)
		}
		block := res.Contents[0]
		if block.Blob != nil {
			blobs++
			all = append(all, block.Blob...)
		}
		all = append(all, block.Text...)
		pages++
		page, _ := res.Meta["mcsh/page"].(map[string]any)
		uri, _ = page["next"].(string)
	}
	return all, pages, blobs
}

// TestLongOutput: a result of 2 MB, of 10 MB at night, answers within the budget, and pages back byte for byte; a further
// pipeline begins from it without another call.
func TestLongOutput(t *testing.T) {
	t.Parallel()
	w := newKeptWorld(t, runs.Options{})
	lines, page := parttest.Times(40_000, 200_000), parttest.Times(399_999, 3_999_999)
	text, result := w.execute(t, "["+dumpStage(lines)+"]", "max_output", 5000)
	if n := utf8.RuneCountInString(text); result.IsError || n > 5000 {
		t.Fatalf("%d characters: %.300s", n, text)
	}
	want := dump(lines)
	link := linkOf(t, result)
	run := runID.FindString(link.URI)
	if link.URI != "mcsh://runs/"+run+"/output" || link.Size == nil || *link.Size != int64(len(want)) {
		t.Errorf("the link is %+v", link)
	}
	if from := fmt.Sprintf(`{"type": "from", "run": %q}`, run); !strings.Contains(text, from) {
		t.Errorf("the reply lacks %s:\n%.400s", from, text)
	}
	if report := result.Meta["mcsh/report"].(map[string]any); report["run"] != run {
		t.Errorf("the report names the run %v", report["run"])
	}
	if got, pages, blobs := readAll(t, w.agent, fmt.Sprint(link.URI, "?limit=", page)); string(got) != want || pages < lines/(page/50+1) || blobs != 0 {
		t.Errorf("%d bytes in %d pages, %d of them blobs, want %d bytes", len(got), pages, blobs, len(want))
	}
	got, _ := w.output(t, fmt.Sprintf(`[{"type":"from","run":%q},{"type":"command","command":"tail","args":["-n","1"]}]`, run))
	if got != dump(lines)[len(want)-len(want)/lines:] {
		t.Errorf("from the output: got %q", got)
	}
	if n := w.shop.Calls("dump"); n != 1 {
		t.Errorf("%d calls were made, want 1", n)
	}
}

// TestJQIterations: five programs tried on one result of a tool make one call.
func TestJQIterations(t *testing.T) {
	w := newKeptWorld(t, runs.Options{})
	text, _ := w.execute(t, `[{"type":"tool","server":"shop","name":"list_orders"},{"type":"command","command":"jq","args":["length"]}]`)
	run := runID.FindString(text)
	if run == "" {
		t.Fatalf("the note names no run:\n%s", text)
	}
	for program, want := range map[string]string{
		".[0].id": "1\n", "map(.total) | add": "7.5\n", ".[1].customer_id": "7\n", ".[0].customer_id": "9007199254740993\n", "map(.id) | @csv": "\"1,2\"\n",
	} {
		got, _ := w.output(t, fmt.Sprintf(`[{"type":"from","run":%q,"stage":1},{"type":"command","command":"jq","args":[%q]}]`, run, program))
		if got != want {
			t.Errorf("%s: got %q, want %q", program, got, want)
		}
	}
	if n := w.shop.Calls("list_orders"); n != 1 {
		t.Errorf("%d calls were made, want 1", n)
	}
}

// TestOutputPages: pages end between characters; bytes that are no text come as they are; wrong URIs are refused.
func TestOutputPages(t *testing.T) {
	t.Parallel()
	w := newKeptWorld(t, runs.Options{Output: 1 << 20})
	_, result := w.execute(t, `[{"type":"command","command":"jq","args":["-n","-j","\"aé日🙂\""]},{"type":"command","command":"head","args":["-c","8"]}]`)
	uri := "mcsh://runs/" + result.Meta["mcsh/report"].(map[string]any)["run"].(string) + "/output"
	for limit := 4; limit < 12; limit++ {
		if got, _, blobs := readAll(t, w.agent, fmt.Sprintf("%s?limit=%d", uri, limit)); string(got) != "aé日🙂"[:8] || blobs == 0 {
			t.Errorf("limit %d: got %q, %d blobs", limit, got, blobs)
		}
	}
	text, result := w.output(t, `[{"type":"command","command":"jq","args":["-n","-j","\"aé日🙂\" * 3"]}]`)
	uri = "mcsh://runs/" + result.Meta["mcsh/report"].(map[string]any)["run"].(string) + "/stages/1"
	for limit := 4; limit < 12; limit++ {
		got, pages, blobs := readAll(t, w.agent, fmt.Sprintf("%s?limit=%d", uri, limit))
		if string(got) != text || pages < 3 || blobs != 0 {
			t.Errorf("limit %d: got %q in %d pages, %d of them blobs", limit, got, pages, blobs)
		}
	}
	_, long := w.execute(t, "["+dumpStage(30_000)+"]")
	longURI := "mcsh://runs/" + long.Meta["mcsh/report"].(map[string]any)["run"].(string) + "/output"
	for _, tt := range []struct{ uri, want string }{
		{"mcsh://runs/r_aaaaaaaaaaaaaaaaaaaaaaaaaa/output", "not found"},
		{uri + "?offset=1000", "offset 1000 is past the end: there are 30 bytes"},
		{uri + "?offset=-1", "is not a number of bytes"},
		{uri + "?limit=3", "not between 4 and"},
		{uri + "?limit=99999999", "not between 4 and"},
		{strings.Replace(uri, "stages/1", "stages/0", 1), "is not a positive number"},
		{strings.Replace(uri, "stages/1", "stages/2", 1), "there is no stage 2: run r_"},
		{longURI, "longer than 1 mib"},
		{"file:///etc/passwd", "not found"},
	} {
		_, err := w.agent.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: tt.uri})
		var wire *jsonrpc.Error
		if !errors.As(err, &wire) || !strings.Contains(strings.ToLower(wire.Message), tt.want) || wire.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%s: got %v, want %q", tt.uri, err, tt.want)
		}
	}
	if text, _ := w.execute(t, "["+dumpStage(30_000)+"]"); !strings.Contains(text, "It is not kept: ") || !strings.Contains(text, "longer than 1 MiB") {
		t.Errorf("a reply whose output is too long to be kept does not say so:\n%.500s", text)
	}
}

// TestOutputCallers: over HTTP the id of a run gives access to it in any session; the client behind pipes has its own
// runs; no list shows them.
func TestOutputCallers(t *testing.T) {
	w := newKeptWorld(t, runs.Options{})
	_, result := w.execute(t, `[{"type":"tool","server":"shop","name":"list_orders"}]`)
	piped := result.Meta["mcsh/report"].(map[string]any)["run"].(string)
	one, two, stateless := w.overHTTP(t, false), w.overHTTP(t, false), w.overHTTP(t, true)
	made, err := one.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_pipeline", Arguments: json.RawMessage(
		`{"pipeline":[{"type":"tool","server":"shop","name":"list_orders"}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	run := made.Meta["mcsh/report"].(map[string]any)["run"].(string)
	one.Close()
	for _, tt := range []struct {
		name  string
		agent *mcp.ClientSession
		run   string
		found bool
	}{
		{"another session", two, run, true},
		{"no session", stateless, run, true},
		{"pipes", w.agent, run, false},
		{"another session, of pipes", two, piped, false},
		{"pipes, its own", w.agent, piped, true},
	} {
		_, err := tt.agent.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mcsh://runs/" + tt.run + "/output"})
		if (err == nil) != tt.found {
			t.Errorf("%s: reading: %v", tt.name, err)
		}
		reply, err := tt.agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_pipeline", Arguments: json.RawMessage(
			fmt.Sprintf(`{"pipeline":[{"type":"from","run":%q}]}`, tt.run))})
		if err != nil || reply.IsError == tt.found {
			t.Errorf("%s: from: %+v, %v", tt.name, reply, err)
		} else if text := reply.Content[0].(*mcp.TextContent).Text; !tt.found && !strings.Contains(text, "UNKNOWN_RUN") {
			t.Errorf("%s: %s", tt.name, text)
		}
		list, err := tt.agent.ListResources(t.Context(), nil)
		if err != nil || len(list.Resources) != 0 {
			t.Errorf("%s: listed are %+v, %v", tt.name, list, err)
		}
		templates, err := tt.agent.ListResourceTemplates(t.Context(), nil)
		if err != nil || len(templates.ResourceTemplates) != 2 {
			t.Errorf("%s: templates are %+v, %v", tt.name, templates, err)
		}
	}
	if n := w.shop.Calls("list_orders"); n != 2 {
		t.Errorf("%d calls were made, want 2", n)
	}
}

// TestResumeAsPrinted: the stage that an error prints continues the run, and the note says what was not called again.
func TestResumeAsPrinted(t *testing.T) {
	w := newKeptWorld(t, runs.Options{})
	each := `{"type":"tool","server":"shop","name":"get_item","for_each":true,"concurrency":1}`
	text, result := w.execute(t, `[{"type":"command","command":"jq","args":["-n","range(1;21)"]},`+each+`,{"type":"command","command":"jq","args":["length"]}]`)
	_, rest, ok := strings.Cut(text, "Continue with ")
	begin, _, _ := strings.Cut(rest, "\n")
	if !result.IsError || !ok {
		t.Fatalf("the error does not say how to continue:\n%s", text)
	}
	called := w.shop.Calls("get_item")
	text, result = w.execute(t, "["+strings.TrimSuffix(begin, "}")+`, "on_error": "skip"}]`)
	if result.IsError || !strings.Contains(text, "8 calls, 7 ok") || !strings.Contains(text, "12 more answered from the earlier run") || !strings.HasSuffix(text, "19\n") {
		t.Errorf("got %s", text)
	}
	if n := w.shop.Calls("get_item") - called; n != 8 {
		t.Errorf("%d calls were made, want 8", n)
	}
}

// TestOutputIsPrivate: a page of an output is for the client that asked, and for no cache in between.
func TestOutputIsPrivate(t *testing.T) {
	w := newKeptWorld(t, runs.Options{})
	_, result := w.execute(t, "["+dumpStage(1000)+"]", "max_output", 500)
	res, err := w.agent.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: linkOf(t, result).URI})
	if err != nil || res.CacheScope != "private" {
		t.Errorf("got scope %q, %v", res.CacheScope, err)
	}
}
