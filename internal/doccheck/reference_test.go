//go:build unix

package doccheck

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// reference is the document whose pipelines are sent to a gateway.
const reference = "docs/pipeline.md"

// An example is a pipeline of the reference, in a block marked "json run", "json check" or "json dry_run", with its
// reply, in the next block. A block that holds an object has all arguments of the call. A reply begins with its note
// only if it is marked "text reply".
type example struct {
	line  int // of the reply's first line
	lines int // of the reply
	call  map[string]any
	whole bool
	reply string
}

var (
	runID   = regexp.MustCompile(`r_[a-z2-7]{26}`)
	logName = regexp.MustCompile(`q_[a-z0-9]+`)
)

// TestReference sends the pipelines of the reference to one gateway, in one session. r_… stands for the latest run.
func TestReference(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, reference)
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	examples, err := parseReference(string(document))
	if err != nil {
		t.Fatal(err)
	}
	session := converse(t, string(document))
	run := ""
	for i, e := range examples {
		encoded, err := json.Marshal(e.call)
		if err != nil {
			t.Fatal(err)
		}
		encoded = bytes.ReplaceAll(encoded, []byte("r_…"), []byte(run))
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_pipeline", Arguments: json.RawMessage(encoded)})
		if err != nil {
			t.Fatalf("%s:%d: %v", reference, e.line, err)
		}
		all, err := json.Marshal(res)
		if err != nil {
			t.Fatal(err)
		}
		if id := runID.Find(all); id != nil {
			run = string(id)
		}
		got := replyText(res, e.whole)
		switch {
		case matches(strings.Split(e.reply, "\n"), strings.Split(got, "\n")):
		case *update:
			examples[i].reply = logName.ReplaceAllString(runID.ReplaceAllString(got, "r_..."), "q_...")
		default:
			t.Errorf("%s:%d: got\n%s\nwant\n%s", reference, e.line, got, e.reply)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(renewed(string(document), examples)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// converse starts a gateway with two built-in servers, on a directory with the files that the document lists, and the
// server that it describes.
func converse(t *testing.T, document string) *mcp.ClientSession {
	t.Helper()
	bin, dir, config := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "mcp.json")
	if err := parttest.Build(bin, "cmd/mcsh"); err != nil {
		t.Fatal(err)
	}
	for name, text := range listedFiles(t, document) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	servers := fmt.Sprintf(`{"mcpServers": {"demo": {"builtin": "demo"}, "filesystem": {"builtin": "filesystem", "root": %q}, "forms": {"url": %q}}}`,
		dir, forms(t, document).HTTP(t, nil).URL)
	if err := os.WriteFile(config, []byte(servers), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "mcsh"), "serve", "--config", config, "--workspace", dir)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+t.TempDir(), "MCSH_STATE=off", "MCSH_TOOLHIVE=off")
	session, err := mcp.NewClient(&mcp.Implementation{Name: "doccheck", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	})
	return session
}

// forms is the server whose tools the document lists. A tool answers with the result of the page that it is asked for, or
// with its arguments if it has no results.
func forms(t *testing.T, document string) *mcptest.Upstream {
	t.Helper()
	_, rest, _ := strings.Cut(document, "<!-- forms -->\n```json\n")
	block, _, _ := strings.Cut(rest, "\n```\n")
	var listed []struct {
		Name        string
		InputSchema json.RawMessage
		Results     []json.RawMessage
	}
	if err := json.Unmarshal([]byte(block), &listed); err != nil {
		t.Fatalf("the tools of the server forms: %v", err)
	}
	server := mcptest.New()
	for _, tool := range listed {
		server.Add(mcptest.Tool{Name: tool.Name, Schema: string(tool.InputSchema), ReadOnly: true, Raw: func(_ context.Context, args json.RawMessage) (string, error) {
			if tool.Results == nil {
				return fmt.Sprintf(`{"content": [], "structuredContent": %s}`, args), nil
			}
			var asked struct{ Page int }
			if err := json.Unmarshal(args, &asked); err != nil {
				return "", err
			}
			return string(tool.Results[max(asked.Page, 1)-1]), nil
		}})
	}
	return server
}

// listedFiles returns the rows of the table of files, | `name` | `JSON string` |.
func listedFiles(t *testing.T, document string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `(\".*\")` \\|$").FindAllStringSubmatch(document, -1) {
		var text string
		if err := json.Unmarshal([]byte(row[2]), &text); err != nil {
			t.Fatalf("%s: %v", row[1], err)
		}
		files[row[1]] = text
	}
	return files
}

// replyText returns a reply as the reference shows it: blocks one below the other, those that are not text as JSON.
func replyText(res *mcp.CallToolResult, whole bool) string {
	var texts []string
	for i, block := range res.Content {
		text, ok := block.(*mcp.TextContent)
		switch {
		case !ok:
			encoded, _ := json.Marshal(block) // it came as JSON
			texts = append(texts, string(encoded))
		case whole || i > 0 || res.IsError || len(res.Content) == 1:
			texts = append(texts, strings.TrimSuffix(text.Text, "\n"))
		}
	}
	return strings.Join(texts, "\n")
}

func parseReference(document string) ([]example, error) {
	var all []example
	var block []string
	open, info, begun := "", "", 0
	awaited := false // the next block is a reply
	for i, line := range strings.Split(document, "\n") {
		mark, word := fenceOf(line)
		switch {
		case open == "" && mark != "":
			open, info, begun, block = mark, word, i+2, nil
		case open == "":
		case word != "" || len(mark) < len(open):
			block = append(block, line)
		case awaited:
			e := &all[len(all)-1]
			e.line, e.lines, e.whole, e.reply = begun, len(block), info == "text reply", strings.Join(block, "\n")
			open, awaited = "", false
		default:
			mode, ok := strings.CutPrefix(info, "json ")
			if open = ""; !ok {
				continue
			}
			call, err := callOf(strings.Join(block, "\n"), mode)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", begun, err)
			}
			all, awaited = append(all, example{call: call}), true
		}
	}
	if awaited {
		return nil, fmt.Errorf("the last pipeline has no reply")
	}
	return all, nil
}

func callOf(text, mode string) (map[string]any, error) {
	if !slices.Contains([]string{"run", "check", "dry_run"}, mode) {
		return nil, fmt.Errorf("unknown mode %q", mode)
	}
	if strings.HasPrefix(text, "{") {
		var call map[string]any
		err := json.Unmarshal([]byte(text), &call)
		return call, err
	}
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("the pipeline is not JSON: %s", text)
	}
	return map[string]any{"pipeline": json.RawMessage(text), "mode": mode}, nil
}

// renewed returns the document with the replies of examples.
func renewed(document string, examples []example) string {
	lines := strings.Split(document, "\n")
	for _, e := range slices.Backward(examples) {
		lines = slices.Replace(lines, e.line-1, e.line-1+e.lines, strings.Split(e.reply, "\n")...)
	}
	return strings.Join(lines, "\n")
}

func TestParseReference(t *testing.T) {
	document := "a\n```json\n[1]\n```\n```json run\n[2]\n```\nb\n```text\none\ntwo\n```\n```json check\n{\"pipeline\": []}\n```\n````text reply\n```\n````\n"
	want := []example{
		{line: 10, lines: 2, call: map[string]any{"pipeline": json.RawMessage("[2]"), "mode": "run"}, reply: "one\ntwo"},
		{line: 17, lines: 1, call: map[string]any{"pipeline": []any{}}, whole: true, reply: "```"},
	}
	got, err := parseReference(document)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(example{})); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	got[0].reply = "three"
	if text := renewed(document, got); !strings.Contains(text, "```text\nthree\n```\n") {
		t.Errorf("got %s", text)
	}
	for _, wrong := range []string{"```json run\n[\n```\n", "```json runs\n[]\n```\n", "```json run\n[]\n```\n"} {
		if _, err := parseReference(wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}
