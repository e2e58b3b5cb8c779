package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/servers"
	"github.com/mcsh-dev/mcsh/servers/servertest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestServersPage: docs/servers.md has every built-in server with its tools and calls of them, and every option with its flag.
// UPDATE=1 writes them.
func TestServersPage(t *testing.T) {
	updatedPage(t, "../docs/servers.md", "servers", serversText(t))
}

// allTools has the options with which a server offers all of its tools.
var allTools = map[string]json.RawMessage{"filesystem": json.RawMessage(`{"backup": true}`)}

func serversText(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, s := range servers.Builtins() {
		dial, err := configBuiltins(servers.Host{})[s.Name](allTools[s.Name])
		if err != nil {
			t.Fatal(err)
		}
		pool := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: s.Name, Dial: dial}}}})
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| option | flag | |\n|---|---|---|\n", s.Name, strings.ToUpper(s.Summary[:1])+s.Summary[1:])
		for _, o := range s.Options {
			flag := "--" + flagOf(o)
			if short := shortFlags[s.Name][o.Name]; short != "" {
				flag = "-" + short + "`, `" + flag
			}
			fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", o.Name, flag, o.Usage)
		}
		b.WriteString("\n| tool | |\n|---|---|\n")
		for _, tool := range pool.Catalog(t.Context())[0].Tools {
			effect := "only reads"
			if !tool.ReadOnly {
				effect = "may change something"
			}
			fmt.Fprintf(&b, "| `%s` | %s; %s |\n", tool.Name, firstSentence(tool.Description), effect)
		}
		for _, session := range servertest.Sessions(t, s.Name) {
			b.WriteString("\n" + sessionText(s.Name, session))
		}
	}
	return b.String() + "\n"
}

// mostShown bounds the characters of a result in the page.
const mostShown = 300

// sessionText shows the calls of a session, each with its result on the next line.
func sessionText(server string, s servertest.Session) string {
	var b strings.Builder
	command := strings.Join(append([]string{"mcsh server", server}, s.Flags...), " ")
	fmt.Fprintf(&b, "`%s`: %s\n\n```text\n", command, s.About)
	for _, c := range s.Calls {
		fmt.Fprintf(&b, "%s %s\n  %s\n", c.Tool, c.Args, texts.Cut(string(c.Result), mostShown))
	}
	return b.String() + "```\n"
}
