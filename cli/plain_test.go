package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
)

// TestTerminal: whatever a server puts into its names, descriptions, schemas and errors, no command prints what a terminal
// would act on, or what turns the direction of text, and no line of it looks like one of the command's own.
func TestTerminal(t *testing.T) {
	const evil = "x\x1b[2J\x1b]0;title\x07\u009b31m\u202eyx\u2066\u200f\x7f\rOK\u2028OK\u0085OK\nother/tool() - IMPOSTOR\neffect: IMPOSTOR\nok       servers   IMPOSTOR\nerror: IMPOSTOR\nhint: IMPOSTOR\n."
	quoted, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	schema := fmt.Sprintf(`{"type":"object","title":%s,"properties":{%s:{"type":"string","description":%s,"enum":[%s]}},"required":[%s]}`, quoted, quoted, quoted, quoted, quoted)
	server := mcptest.New(
		mcptest.Tool{Name: "get_" + evil, Description: evil, Title: evil, Schema: schema, ReadOnly: true, Text: "x"},
		mcptest.Tool{Name: "search", Description: evil, Schema: schema, OutputSchema: schema, Text: "x"},
		mcptest.Tool{Name: "fail", ReadOnly: true, Do: func(map[string]any) (string, error) { return "", errors.New(evil) }},
	)
	home := t.TempDir()
	config := filepath.Join(home, "mcp.json")
	down := "http://127.0.0.1:1/mcp"
	text := fmt.Sprintf(`{"mcpServers":{"s":{"url":%q,"readOnly":[%s]},"down":{"url":%q}}}`, server.HTTP(t, nil).URL+"/mcp", quoted, down)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	stage := func(name string) string { return fmt.Sprintf(`[{"type":"tool","server":"s","name":%q}]`, name) }
	odd, err := json.Marshal([]map[string]string{{"type": "tool", "server": "s", "name": "get_" + evil}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"tools", "ls", "s"}, "s/get_x"},
		{[]string{"tools", "ls", "s", "--json"}, `"get_x`},
		{[]string{"tools", "ls"}, "down"},
		{[]string{"tools", "show", "s/search"}, "IMPOSTOR"},
		{[]string{"tools", "show", "s/get_" + evil}, "IMPOSTOR"},
		{[]string{"tools", "show", "s/search", "--json"}, "IMPOSTOR"},
		{[]string{"tools", "show", "s/serch" + evil}, "has no tool"},
		{[]string{"tools", "search", "IMPOSTOR"}, "s/"},
		{[]string{"tools", "call", "s/fail"}, "IMPOSTOR"},
		{[]string{"tools", "call", "s/search", "{}"}, "signature"},
		{[]string{"check", stage("search")}, "missing"},
		{[]string{"check", "--fed", string(odd)}, "only reads"},
		{[]string{"check", "--fed", string(odd), "--json"}, `"stages"`},
		{[]string{"run", stage("fail")}, "IMPOSTOR"},
		{[]string{"run", stage("fail"), "--json"}, "IMPOSTOR"},
		{[]string{"run", "--dry-run", stage("search")}, "missing"},
		{[]string{"doctor", "--sandbox", "off"}, "matches no tool"},
		{[]string{"explain", evil}, "neither an error code"},
		{[]string{"__complete", "tools", "show", "s"}, "s/search"},
	} {
		t.Run(strings.Join(c.args[:2], " ")+" "+c.want, func(t *testing.T) {
			var out, errs bytes.Buffer
			environ := []string{"HOME=" + home, stateVariable + "=" + home + "/state", configVariable + "=" + config, toolhiveVariable + "=" + toolhiveOff, "MCSH_SANDBOX=off"}
			run(t.Context(), c.args, strings.NewReader(""), &out, &errs, environ)
			got := out.String() + errs.String()
			if !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %q", got, c.want)
			}
			for _, line := range strings.Split(got, "\n") {
				if strings.ContainsFunc(line, func(c rune) bool { return !unicode.IsPrint(c) && c != '\t' }) {
					t.Errorf("%q would be acted on", line)
				}
				if strings.Contains(evil, "\n"+line+"\n") {
					t.Errorf("%q looks like a line of the command in:\n%s", line, got)
				}
			}
		})
	}
}
