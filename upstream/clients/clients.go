// Package clients knows where other MCP clients keep their servers and in what form. It imports servers from there into
// a configuration of ours, and writes this gateway into their files.
package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/config"
)

// MaxFile bounds a file of a client, in bytes: some keep conversations in it.
const MaxFile = 64 << 20

// How a client writes variables into its strings.
const (
	literal = iota // not at all: a dollar sign is just that
	braces         // ${VAR}, as we do
	dollars        // $VAR and ${VAR}
)

// A Client is one program that keeps MCP servers in a file.
type Client struct {
	Name  string // as people say it to us
	Title string
	Then  string // what is left to do once a server has been added; empty: to start it again

	files   []string // with "~", "{config}" (of the user) and "." (the project) at the beginning
	keys    []string // paths to the servers, with dots between the names; the first is where a new one goes
	variant int      // how it writes variables
	form    form     // how it writes an entry
}

// All are the clients, in the order in which they are shown.
func All() []Client {
	mcpServers := []string{"mcpServers"}
	return []Client{
		{"claude-code", "Claude Code", "`claude mcp list` shows it; of servers of a project it asks first", []string{"./.mcp.json", "~/.claude.json"}, []string{"mcpServers", "projects.{project}.mcpServers"}, braces, form{url: "url", http: "http", stdio: "stdio", env: "${%s}"}},
		{"claude-desktop", "Claude Desktop", "quit Claude Desktop and start it again", []string{"{config}/Claude/claude_desktop_config.json"}, mcpServers, literal, form{}},
		{"cursor", "Cursor", "its settings show the server under MCP", []string{"./.cursor/mcp.json", "~/.cursor/mcp.json"}, mcpServers, braces, form{url: "url", env: "${env:%s}"}},
		{"vscode", "VS Code", "it asks whether the server may be trusted when it starts it first", []string{"./.vscode/mcp.json", "{config}/Code/User/mcp.json", "{config}/Code - Insiders/User/mcp.json"}, []string{"servers"}, braces, form{url: "url", http: "http", stdio: "stdio", env: "${env:%s}"}},
		{"gemini", "Gemini CLI", "/mcp list shows it; in a folder that is not trusted its servers are disabled", []string{"./.gemini/settings.json", "~/.gemini/settings.json"}, mcpServers, dollars, form{url: "httpUrl", env: "${%s}"}},
		{"codex", "Codex CLI", "/mcp shows it in a new session", []string{"./.codex/config.toml", "~/.codex/config.toml"}, []string{"mcp_servers"}, literal, form{url: "url", token: "bearer_token_env_var"}},
		{"windsurf", "Windsurf", "press Refresh in its MCP settings", []string{"~/.codeium/windsurf/mcp_config.json"}, mcpServers, braces, form{url: "serverUrl", env: "${env:%s}"}},
		{"zed", "Zed", "its agent panel shows the server under settings", []string{"./.zed/settings.json", "~/.config/zed/settings.json"}, []string{"context_servers"}, literal, form{url: "url"}},
		{"cline", "Cline", "its MCP panel shows the server", []string{"{config}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"}, mcpServers, literal, form{url: "url", http: "streamableHttp"}},
		{"opencode", "opencode", "start it again", []string{"./opencode.json", "~/.config/opencode/opencode.json"}, []string{"mcp"}, literal, form{url: "url", http: "remote", stdio: "local", list: true, env: "{env:%s}"}},
		{"amp", "Amp", "start it again", []string{"~/.config/amp/settings.json"}, []string{"amp.mcpServers"}, braces, form{url: "url", env: "${%s}"}},
		{"lm-studio", "LM Studio", "switch the server on in its Program tab", []string{"~/.lmstudio/mcp.json"}, mcpServers, literal, form{url: "url"}},
		{"kiro", "Kiro", "its MCP panel shows the server", []string{"./.kiro/settings/mcp.json", "~/.kiro/settings/mcp.json"}, mcpServers, braces, form{url: "url", env: "${%s}"}},
		{"copilot", "Copilot CLI", "/mcp show shows it", []string{"~/.copilot/mcp-config.json"}, mcpServers, literal, form{url: "url", http: "http", stdio: "local", tools: true}},
	}
}

// anyFile is how a file of an unknown client is read.
func anyFile() Client {
	keys := []string{"mcpServers", "servers", "context_servers", "mcp_servers", "amp.mcpServers", "mcp"}
	return Client{Name: "file", Title: "a file", keys: keys, variant: braces}
}

// Places are the directories in which the files of clients are.
type Places struct{ Home, Config, Project string }

// A clientFile is a file of a client, whether it exists or not.
type clientFile struct {
	path    string // empty: its directory is not known
	rest    string // of the path, below that directory
	project bool   // it belongs to the project, not to the user
}

func (c Client) filesAt(p Places) []clientFile {
	var list []clientFile
	for _, name := range c.files {
		base, rest, _ := strings.Cut(name, "/")
		f := clientFile{rest: rest, project: base == "."}
		if dir := map[string]string{"~": p.Home, "{config}": p.Config, ".": p.Project}[base]; dir != "" {
			f.path = filepath.Join(dir, filepath.FromSlash(rest))
		}
		list = append(list, f)
	}
	return list
}

// Files are the paths of a client's files, whether they exist or not: those of the project first. The project may be the
// home directory; no file comes twice.
func (c Client) Files(p Places) []string {
	var paths []string
	for _, f := range c.filesAt(p) {
		if f.path != "" && !slices.Contains(paths, f.path) {
			paths = append(paths, f.path)
		}
	}
	return paths
}

// Of returns the client that owns a file, as far as its path says.
func Of(path string, p Places) Client {
	for _, c := range All() {
		for _, f := range c.filesAt(p) {
			if path == f.path || strings.HasSuffix(filepath.ToSlash(path), "/"+f.rest) {
				return c
			}
		}
	}
	return anyFile()
}

// An Entry is one server of a file, translated.
type Entry struct {
	Name    string
	Server  *Server  // nil where it cannot be taken
	LeftOut []string // keys without a meaning here
	Err     error    // why it cannot be taken
}

// Contents are the servers in a file of a client.
type Contents struct {
	Servers []Entry
	Inputs  []map[string]any // as VS Code declares them
}

// Read reads a file of a client. The path says its form and the project that it belongs to, if any.
func (c Client) Read(path string, data []byte, p Places) (Contents, error) {
	root, err := decode(path, data)
	if err != nil {
		return Contents{}, fmt.Errorf("%s: %w", path, err)
	}
	var r Contents
	r.Inputs = objects(root["inputs"])
	t := translator{variant: c.variant, workspace: p.Project, project: c.isProject(path, p)}
	found := false
	for _, key := range c.keys {
		servers, ok := lookup(root, key, p.Project)
		if !ok {
			continue
		}
		found = true
		t := t
		t.project = t.project || strings.HasPrefix(key, "projects.")
		for _, name := range sortedNames(servers) {
			first := !slices.ContainsFunc(r.Servers, func(f Entry) bool { return f.Name == name })
			if name != "" && first { // of the two scopes of a file the first counts
				f := t.server(servers[name])
				f.Name = name
				r.Servers = append(r.Servers, f)
			}
		}
	}
	if !found {
		return r, fmt.Errorf("%s: it has no servers; they belong under %s", path, strings.Join(c.keys, " or "))
	}
	rejectInvalid(r.Servers)
	return r, nil
}

// isProject reports whether a file belongs to the project rather than to the user.
func (c Client) isProject(path string, p Places) bool {
	return slices.ContainsFunc(c.filesAt(p), func(f clientFile) bool { return f.path == path && f.project })
}

// lookup follows a path with dots. {project} is the directory of the project.
func lookup(root map[string]any, key, project string) (map[string]any, bool) {
	if servers, ok := root[key].(map[string]any); ok { // a name with a dot in it
		return servers, true
	}
	at := root
	for _, name := range strings.Split(key, ".") {
		if name == "{project}" {
			name = project
		}
		next, ok := at[name].(map[string]any)
		if !ok {
			return nil, false
		}
		at = next
	}
	return at, true
}

// decode reads TOML if the file's name says so, and JSON with comments otherwise.
func decode(path string, data []byte) (map[string]any, error) {
	root := map[string]any{}
	if filepath.Ext(path) == ".toml" {
		err := toml.Unmarshal(data, &root)
		if wrong, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := wrong.Position()
			return nil, fmt.Errorf("line %d, column %d: %s", line, column, strings.TrimPrefix(wrong.Error(), "toml: "))
		}
		return root, err
	}
	tree, err := parse(bytes.TrimPrefix(data, []byte(byteOrderMark)))
	if err != nil {
		return nil, err
	}
	tree.Standardize()
	dec := json.NewDecoder(bytes.NewReader(tree.Pack()))
	dec.UseNumber()
	if err := dec.Decode(&root); err != nil {
		return nil, fmt.Errorf("want an object with servers: %w", err)
	}
	return root, nil
}

// parse reads JSON with comments. The tree shares no memory with the data.
func parse(data []byte) (hujson.Value, error) {
	tree, err := hujson.Parse(bytes.Clone(data))
	if err != nil {
		err = errors.New(strings.TrimPrefix(err.Error(), "hujson: "))
	}
	return tree, err
}

func objects(v any) []map[string]any {
	list, _ := v.([]any)
	var out []map[string]any
	for _, one := range list {
		if o, ok := one.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// rejectInvalid refuses servers that our configuration would refuse. The values of variables are not known here.
func rejectInvalid(list []Entry) {
	for i := range list {
		f := &list[i]
		if f.Server == nil {
			continue
		}
		files := map[string]string{"entry": texts.JSON(map[string]any{"mcpServers": map[string]any{f.Name: f.Server}})}
		file := &config.File{
			Path: "entry", Lookup: func(string) (string, bool) { return "http://any", true },
			ReadFile: func(path string) ([]byte, error) { return []byte(files[path]), nil },
		}
		if _, err := file.Servers(context.Background()); err != nil {
			f.Server, f.Err = nil, errors.New(strings.TrimLeft(strings.TrimPrefix(err.Error(), "entry:1: "+f.Name), ".: "))
		}
	}
}
