//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
)

// issuesVariable names the file in which the replica of a tracker writes down what it created.
const issuesVariable = "MCSH_E2E_ISSUES"

// issues is a tracker. Its tool is annotated as little as that of the real ones, and refuses one title.
func issues() *mcptest.Upstream {
	var number atomic.Int64
	return mcptest.New(mcptest.Tool{
		Name: "create_issue",
		Schema: `{"type":"object","properties":{"title":{"type":"string"},"body":{"type":"string"},
			"labels":{"type":"array","items":{"type":"string"}}},"required":["title"],"additionalProperties":false}`,
		Do: func(args map[string]any) (string, error) {
			title := args["title"].(string)
			if title == "refuse me" {
				return "", fmt.Errorf("422 Validation Failed: title")
			}
			line := fmt.Sprintf("%s %v\n", title, args["labels"])
			f, err := os.OpenFile(os.Getenv(issuesVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return "", err
			}
			defer f.Close()
			if _, err := f.WriteString(line); err != nil {
				return "", err
			}
			text, err := json.Marshal(object{"number": number.Add(1), "title": title})
			return string(text), err
		},
	})
}

// page is a page that writes to the console of its browser.
func page(errors ...string) string {
	var b strings.Builder
	b.WriteString(`<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>shop</title><script>console.log("no error");console.warn("nor this");`)
	for _, e := range errors {
		text, _ := json.Marshal(e) // a string always encodes
		fmt.Fprintf(&b, "console.error(%s);", text)
	}
	return b.String() + "</script>"
}

func many(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("cart: the price of item %d is missing", i))
	}
	return list
}

// TestIssues runs examples/console-errors with a real browser: one call for each error, in order, and none when an
// earlier stage fails.
func TestIssues(t *testing.T) {
	t.Parallel()
	type row struct {
		name   string
		page   string // empty: nobody listens
		alter  func(pipeline []object)
		filed  []string // titles
		says   string   // what the reply says besides; a pipeline that is broken fails
		failed bool
	}
	rows := []row{
		{name: "one error", page: page("cart is empty"), filed: []string{"cart is empty"}, says: "#1 cart is empty"},
		{name: "many errors", page: page(many(40)...), filed: many(40), says: "the price of item 39"},
		{name: "odd text", page: page(`"quoted" 'x' $(reboot) ü €`, "@ at"), filed: []string{`"quoted" 'x' $(reboot) ü €`, "@ at"}, says: "$(reboot)"},
		{name: "no error", page: page()},
		{name: "an issue is refused", page: page("first", "refuse me", "third"), filed: []string{"first"}, says: "422 Validation Failed", failed: true},
		{name: "jq fails at the last line", page: page(many(10)...), says: "cannot be", failed: true, alter: func(p []object) {
			p[4] = command("jq", "-R", "-c", `if test("item 9") then error("cannot be") else {title: .} end`)
		}},
		{name: "jq gives what the tool does not take", page: page(many(3)...), says: "INVALID_ARGUMENTS", failed: true, alter: func(p []object) {
			p[4] = command("jq", "-R", "-c", `{title: 17}`)
		}},
		{name: "a plan with a mistake at its end", page: page(many(3)...), says: "Nothing was called", failed: true, alter: func(p []object) {
			p[6] = command("jq", "-r", ".[")
		}},
		{name: "a command fails at its end", page: page(many(3)...), says: "COMMAND_FAILED", failed: true, alter: func(p []object) {
			p[3] = command("awk", `{print} END {exit 3}`)
		}},
		{name: "the page is not there", says: "ERR_CONNECTION_REFUSED", failed: true},
	}
	file := filepath.Join(t.TempDir(), "issues")
	tracker := child(t, "issues")
	env := object{issuesVariable: file}
	for k, v := range tracker["env"].(map[string]string) {
		env[k] = v
	}
	g := serveStdio(t, object{"playwright": playwright(t), "issues": with(without(tracker, "env"), "env", env)}, versions[1], nil)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			pipeline := consoleErrors(t, row.page)
			if row.alter != nil {
				row.alter(pipeline)
			}
			text, failed := execute(t, g.ClientSession, pipeline...)
			if failed != row.failed || !strings.Contains(text, row.says) {
				t.Errorf("failed: %v, want %v; %q does not say %q", failed, row.failed, text, row.says)
			}
			var filed []string
			written, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(written)) {
				title, ok := strings.CutSuffix(line, " [console]\n")
				if !ok {
					t.Errorf("filed %q without its label", line)
				}
				filed = append(filed, title)
			}
			if diff := cmp.Diff(row.filed, filed); diff != "" {
				t.Errorf("filed (-want +got):\n%s", diff)
			}
		})
	}
}

// consoleErrors is the pipeline of the example, for a page that is served during the test.
func consoleErrors(t *testing.T, html string) []object {
	t.Helper()
	text, err := os.ReadFile("../../examples/console-errors/pipeline.json")
	if err != nil {
		t.Fatal(err)
	}
	var pipeline []object
	if err := json.Unmarshal(text, &pipeline); err != nil {
		t.Fatal(err)
	}
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(html)) // the browser has gone away
	}))
	if html == "" {
		shop.Close()
	} else {
		t.Cleanup(shop.Close)
	}
	pipeline[0]["args"] = object{"url": shop.URL}
	return pipeline
}
