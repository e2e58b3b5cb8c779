//go:build linux

package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/upstream/clients"
)

// fileName is the name of a client's file in a text.
var fileName = regexp.MustCompile("`([^`\n]*\\.json)`")

// A snippet is a configuration in a document, with the first file that the text before it names.
type snippet struct{ file, config string }

// snippets finds those of a section, except for configurations of the gateway: the text before those names no file.
func snippets(section string) (found []snippet) {
	before, rest, ok := strings.Cut(section, "```json\n")
	for ok {
		config, after, _ := strings.Cut(rest, "\n```\n")
		if name := fileName.FindStringSubmatch(before); name != nil {
			found = append(found, snippet{name[1], config})
		}
		before, rest, ok = strings.Cut(after, "```json\n")
	}
	return found
}

// read returns the server of a snippet, as the client reads it that has such a file.
func (s snippet) read(t *testing.T) (client string, server *clients.Server) {
	t.Helper()
	places := clients.Places{Home: "/home/me", Config: "/home/me/Library/Application Support", Project: "/home/me/project"}
	path := filepath.Join(places.Project, s.file)
	if rest, ok := strings.CutPrefix(s.file, "~"); ok {
		path = places.Home + rest
	}
	c := clients.Of(path, places)
	contents, err := c.Read(path, []byte(s.config), places)
	if err != nil || len(contents.Servers) != 1 || contents.Servers[0].Err != nil || len(contents.Servers[0].LeftOut) > 0 {
		t.Fatalf("%s: %v: %+v", s.file, err, contents.Servers)
	}
	return c.Name, contents.Servers[0].Server
}

// TestBuiltinSnippets: each configuration of docs/servers.md for the file of a client is a server that works.
func TestBuiltinSnippets(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/servers.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, address, token := builtinHTTP(t, dir, "server", "filesystem", "--root", dir)
	tried := map[string]int{}
	_, section, _ := strings.Cut(string(page), "## On its own\n")
	for _, s := range snippets(section) {
		client, server := s.read(t)
		tried[client]++
		var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: address, HTTPClient: &http.Client{Transport: bearer(token)}}
		if server.Command != "" {
			args := strings.Split(strings.ReplaceAll(strings.Join(server.Args, "\x00"), "/home/me/notes", dir), "\x00")
			transport = &mcp.CommandTransport{Command: exec.Command(mcshPath(), args...)}
		} else if header := server.Headers["Authorization"]; server.URL != "http://127.0.0.1:8810/mcp" || header != "Bearer ${NOTES_TOKEN}" && header != "Bearer ${env:NOTES_TOKEN}" {
			t.Errorf("%s: %+v", s.file, server)
		}
		session := connect(t, transport, versions[0], nil)
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_directory", Arguments: object{"path": "."}})
		if err != nil || !strings.Contains(textOf(res), "[FILE] a.txt") {
			t.Errorf("%s: %+v, %v", s.file, res, err)
		}
		session.Close()
	}
	if diff := cmp.Diff(map[string]int{"claude-desktop": 1, "claude-code": 2, "cursor": 2, "vscode": 2}, tried); diff != "" {
		t.Errorf("configurations by client (-want +got):\n%s", diff)
	}
}
