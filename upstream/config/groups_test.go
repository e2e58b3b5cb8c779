package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/upstream/config"
)

// TestGroups: groups stand beside the servers, with their lines; a mistake in one has its place and loses the file.
func TestGroups(t *testing.T) {
	for _, test := range []struct{ name, groups, want, err string }{
		{"none", ``, "[]", ""},
		{"groups", `"groups": {"dev": ["a", "b-*"], /* one */ "ops": ["a",],},`, "[{dev [a b-*] FILE:2} {ops [a] FILE:2}]", ""},
		{"no groups", `"groups": {},`, "[]", ""},
		{"two members", `"groups": {"dev": ["a"]}, "groups": {"ops": ["a"]},`, "[{dev [a] FILE:2} {ops [a] FILE:2}]", ""},
		{"a list", `"groups": ["dev"],`, "", `FILE:2: groups: want an object with a list of servers per group, such as {"dev": ["github", "fs-*"]}`},
		{"one server", `"groups": {"dev": "a"},`, "", "FILE:2: groups.dev: want a list of names of servers, got a string"},
		{"an object", `"groups": {"dev": {"servers": ["a"]}},`, "", "FILE:2: groups.dev: want a list of names of servers, got an object of something else"},
		{"null", `"groups": {"dev": null},`, "", "FILE:2: groups.dev: want a list of names of servers, got null"},
		{"numbers", `"groups": {"dev": [1]},`, "", "FILE:2: groups.dev: want a list of names of servers, got an array of something else"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "mcp.json")
			text := "{\n" + test.groups + "\n\"mcpServers\": {\"a\": {\"command\": \"x\"}}}"
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			f := &config.File{Path: path}
			_, err := f.Servers(t.Context())
			said := ""
			if err != nil {
				said = strings.ReplaceAll(err.Error(), path, "FILE")
			}
			if said != test.err {
				t.Errorf("got %s, want %s", said, test.err)
			}
			var got []string
			for _, g := range f.Groups() {
				got = append(got, strings.ReplaceAll(fmt.Sprintf("{%s %v %s}", g.Name, g.Servers, g.Where), path, "FILE"))
			}
			if test.err == "" && fmt.Sprint(got) != test.want {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}
