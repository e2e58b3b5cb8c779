package clients

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

var (
	started = Gateway{Name: "mcsh", Command: "/usr/bin/mcsh", Args: []string{"serve", "--config", "/srv/a \"b\".json"}}
	reached = Gateway{Name: "mcsh", URL: "http://127.0.0.1:8808/mcp"}
)

func client(t *testing.T, name string) Client {
	t.Helper()
	for _, c := range All() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no client %s", name)
	return Client{}
}

// jsonFiles are files of a client with servers under mcpServers, as people and programs leave them.
var jsonFiles = map[string]string{
	"empty object":        "{}\n",
	"no servers yet":      "{\n    \"theme\": \"dark\"\n}\n",
	"empty servers":       "{\n  \"mcpServers\": {}\n}\n",
	"spread servers":      "{\n  \"mcpServers\": {\n  }\n}\n",
	"one server":          "{\n\t\"mcpServers\": {\n\t\t\"a\": {\n\t\t\t\"command\": \"x\"\n\t\t}\n\t},\n\t\"n\": 1\n}",
	"on one line":         `{"mcpServers":{"a":{"command":"x"}}}`,
	"on one line, none":   `{"big":12345678901234567890,"f":1.0}`,
	"trailing commas":     "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"},\n  },\n}\n",
	"comments":            "// mine\n{\n  /* here */ \"mcpServers\": { // now\n    // of a\n    \"a\": {\"command\": \"x\"} // behind a\n    // last\n  }, // end\n  // nothing more\n}\n",
	"comma, comment":      "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}, // behind a\n    // last\n  }\n}\n",
	"only comments":       "{\n  \"mcpServers\": {\n    // none yet\n  }\n}\n",
	"DOS lines":           "{\r\n  \"mcpServers\": {\r\n    \"a\": {\"command\": \"x\"}\r\n  }\r\n}\r\n",
	"mark":                "\xef\xbb\xbf{\n  \"mcpServers\": {\"a\": {\"command\": \"x\"}}\n}\n",
	"braces on one line":  "{ \"mcpServers\": { \"a\": {\n} } }",
	"escapes":             "{\n  \"mcp\\u0053ervers\": {\"\\u00e9\": {\"command\": \"x\"}}\n}\n",
	"a key twice":         "{\n  \"mcpServers\": {\"b\": {}},\n  \"mcpServers\": {\"a\": {\"command\": \"x\"}}\n}\n",
	"blank":               " \n\n",
	"empty":               "",
	"a line without end":  "{\n  \"a\": 1 // no more\n}",
	"null beside":         "{\n  \"x\": null,\n  \"mcpServers\": {\"a\": null}\n}\n",
	"comment before end}": "{\n  \"mcpServers\": {\"a\": {\"command\": \"x\"} /* } */ }\n}\n",
}

var tomlFiles = map[string]string{
	"empty":         "",
	"other tables":  "model = \"o\" # mine\n\n[mcp_servers.a]\ncommand = \"x\"\nargs = [\n  \"[mcp_servers.mcsh]\",\n]\n\n# about profiles\n[profiles.x]\nk = 1979-05-27T07:32:00Z\n",
	"without end":   "model = \"o\"",
	"DOS lines":     "model = \"o\"\r\n[mcp_servers.a]\r\ncommand = \"x\"\r\n",
	"quoted name":   "[mcp_servers.\"a b\"]\ncommand = \"x\"\n",
	"empty servers": "[mcp_servers]\n",
}

// TestAddRemove: an entry goes in once, is what the client needs, and goes out again without a trace.
func TestAddRemove(t *testing.T) {
	for _, test := range []struct {
		client, path string
		files        map[string]string
	}{
		{"cursor", "mcp.json", jsonFiles}, {"claude-code", ".claude.json", jsonFiles}, {"codex", "config.toml", tomlFiles},
	} {
		c := client(t, test.client)
		for name, text := range test.files {
			list := []Gateway{started, reached}
			if c.NamesToken() {
				list = append(list, Gateway{Name: reached.Name, URL: reached.URL, Token: "MCSH_TOKEN"})
			}
			for _, g := range list {
				t.Run(test.client+"/"+name, func(t *testing.T) { addRemove(t, c, test.path, []byte(text), g) })
			}
		}
	}
}

func addRemove(t *testing.T, c Client, path string, old []byte, g Gateway) {
	t.Helper()
	added, err := c.Add(path, old, g, false)
	if err != nil || added.Outcome != Added {
		t.Fatalf("%s, %v", added.Outcome, err)
	}
	if again, err := c.Add(path, added.Data, g, false); err != nil || again.Outcome != Same || !bytes.Equal(again.Data, added.Data) {
		t.Errorf("the second time: %s, %v\n%s", again.Outcome, err, again.Data)
	}
	entry, there, err := c.find(path, added.Data, g.Name)
	if err != nil || !there || !c.ours(entry, g) {
		t.Errorf("got %v, %v, %v", entry, there, err)
	}
	original := pastOf(old)
	out, err := c.Remove(path, added.Data, original, g)
	if err != nil || out.Outcome != Removed || !bytes.Equal(out.Data, old) {
		t.Errorf("%s, %v: got\n%q\nwant\n%q\nafter\n%q", out.Outcome, err, out.Data, old, added.Data)
	}
	if none, err := c.Remove(path, old, Original{}, g); err != nil || none.Outcome != Missing || !bytes.Equal(none.Data, old) {
		t.Errorf("twice: %s, %v", none.Outcome, err)
	}
	// The other way to reach the gateway takes its place, and leaves in the same way.
	other := reached
	if g.URL != "" {
		other = started
	}
	changed, err := c.Add(path, added.Data, other, g.URL != "") // an address of which nothing is known is another server's
	if err != nil || changed.Outcome != Replaced || changed.NeedsBackup != (g.URL != "") {
		t.Fatalf("%s, %v, %v", changed.Outcome, changed.NeedsBackup, err)
	}
	out, err = c.Remove(path, changed.Data, original, other)
	if err != nil || !sameSaying(t, path, out.Data, old) {
		t.Errorf("%s, %v: got\n%q\nwant\n%q", out.Outcome, err, out.Data, old)
	}
}

func pastOf(backups ...[]byte) Original {
	var original Original
	for _, data := range backups {
		original.Backups = append(original.Backups, Backup{Data: data})
	}
	return original
}

func has(c Client, path string, data []byte) bool {
	_, _, has := c.Others(path, data, "mcsh")
	return has
}

func sameSaying(t *testing.T, path string, a, b []byte) bool {
	t.Helper()
	squeeze := func(text []byte) string { return strings.Join(strings.Fields(string(text)), "") }
	return squeeze(a) == squeeze(b) || isBlank(b) && squeeze(a) == "{}"
}

// TestAddLater: what people change after an entry was added stays when it is taken out.
func TestAddLater(t *testing.T) {
	for _, test := range []struct{ client, path, old, edit, by, want string }{
		{"cursor", "mcp.json", "{}\n", `"mcpServers": {`, "\"mcpServers\": {\n    // mine\n    \"b\": {\"command\": \"y\"},", "{\n  \"mcpServers\": {\n    // mine\n    \"b\": {\"command\": \"y\"}\n  }\n}\n"},
		{"cursor", "mcp.json", "{\n  \"a\": 1\n}\n", `"a": 1`, `"a": 2`, "{\n  \"a\": 2\n}\n"},
		{"cursor", "mcp.json", "{\n  \"mcpServers\": {}\n}\n", `"command"`, `"env": {"A": "1"}, "command"`, "{\n  \"mcpServers\": {}\n}\n"},
		{"codex", "config.toml", "a = 1\n", "a = 1", "a = 2", "a = 2\n"},
		{"codex", "config.toml", "a = 1\n", "args =", "enabled = true\nargs =", "a = 1\n"},
	} {
		c := client(t, test.client)
		added, err := c.Add(test.path, []byte(test.old), started, false)
		if err != nil {
			t.Fatal(err)
		}
		later := strings.Replace(string(added.Data), test.edit, test.by, 1)
		out, err := c.Remove(test.path, []byte(later), pastOf([]byte(test.old)), started)
		if err != nil || string(out.Data) != test.want {
			t.Errorf("%v: got\n%s\nwant\n%s\nof\n%s", err, out.Data, test.want, later)
		}
	}
	codex := client(t, "codex")
	added, err := codex.Add("config.toml", nil, started, false)
	if err != nil {
		t.Fatal(err)
	}
	later := string(added.Data) + "\n[mcp_servers.mcsh.env]\nA = \"1\"\n\n# of b\n[mcp_servers.b]\ncommand = \"y\"\n"
	out, err := codex.Remove("config.toml", []byte(later), Original{}, started)
	if want := "\n# of b\n[mcp_servers.b]\ncommand = \"y\"\n"; err != nil || string(out.Data) != want {
		t.Errorf("%v: got %q, want %q", err, out.Data, want)
	}
}

// TestForms: every client gets an entry in its own words, in a file that is made for it.
func TestForms(t *testing.T) {
	for name, want := range map[string][2]string{
		"claude-code":    {`"mcsh": {"type": "stdio", "command": "/usr/bin/mcsh", "args": ["serve"]}`, `"mcsh": {"type": "http", "url": "http://h/mcp"}`},
		"claude-desktop": {`"mcsh": {"command": "/usr/bin/mcsh", "args": ["serve"]}`, ""},
		"cursor":         {`"mcpServers": {"mcsh": {"command": "/usr/bin/mcsh", "args": ["serve"]}}`, `{"url": "http://h/mcp"}`},
		"vscode":         {`"servers": {"mcsh": {"type": "stdio", "command": "/usr/bin/mcsh", "args": ["serve"]}}`, `{"type": "http", "url": "http://h/mcp"}`},
		"gemini":         {`"mcpServers": {"mcsh": {"command": "/usr/bin/mcsh", "args": ["serve"]}}`, `{"httpUrl": "http://h/mcp"}`},
		"codex":          {"[mcp_servers.mcsh] command = \"/usr/bin/mcsh\" args = [\"serve\"]", `[mcp_servers.mcsh] url = "http://h/mcp"`},
		"windsurf":       {`"mcpServers": {"mcsh": {"command": "/usr/bin/mcsh", "args": ["serve"]}}`, `{"serverUrl": "http://h/mcp"}`},
		"zed":            {`"context_servers": {"mcsh": {"command": "/usr/bin/mcsh", "args": ["serve"]}}`, `{"url": "http://h/mcp"}`},
		"cline":          {`"mcsh": {"command": "/usr/bin/mcsh", "args": ["serve"]}`, `{"type": "streamableHttp", "url": "http://h/mcp"}`},
		"opencode":       {`"mcp": {"mcsh": {"type": "local", "command": ["/usr/bin/mcsh", "serve"]}}`, `{"type": "remote", "url": "http://h/mcp"}`},
		"amp":            {`"amp.mcpServers": {"mcsh": {"command": "/usr/bin/mcsh", "args": ["serve"]}}`, `{"url": "http://h/mcp"}`},
		"lm-studio":      {`"mcsh": {"command": "/usr/bin/mcsh", "args": ["serve"]}`, `{"url": "http://h/mcp"}`},
		"kiro":           {`"mcsh": {"command": "/usr/bin/mcsh", "args": ["serve"]}`, `{"url": "http://h/mcp"}`},
		"copilot":        {`{"type": "local", "command": "/usr/bin/mcsh", "args": ["serve"], "tools": ["*"]}`, `{"type": "http", "url": "http://h/mcp", "tools": ["*"]}`},
	} {
		c := client(t, name)
		path := c.Files(testPlaces)[0]
		for i, g := range []Gateway{{Name: "mcsh", Command: "/usr/bin/mcsh", Args: []string{"serve"}}, {Name: "mcsh", URL: "http://h/mcp"}} {
			if want[i] == "" {
				if c.SpeaksHTTP() {
					t.Errorf("%s takes an address", name)
				}
				continue
			}
			edit, err := c.Add(path, nil, g, false)
			got := strings.Join(strings.Fields(string(edit.Data)), " ")
			got = strings.NewReplacer("{ ", "{", " }", "}").Replace(got)
			if err != nil || !strings.Contains(got, want[i]) {
				t.Errorf("%s: %v: got %s, want %s", name, err, got, want[i])
			}
			if gone, err := c.Remove(path, edit.Data, Original{Made: true}, g); err != nil || gone.Data != nil {
				t.Errorf("%s: of a file that was made %q is left, %v", name, gone.Data, err)
			}
			if left, err := c.Remove(path, edit.Data, Original{}, g); err != nil || left.Data == nil || has(c, path, left.Data) {
				t.Errorf("%s: of a file of which nothing is known %q is left, %v", name, left.Data, err)
			}
		}
	}
	if n := len(All()); n != 14 {
		t.Errorf("of %d clients 14 are tested", n)
	}
}

// TestRefused: a file that cannot be changed without harm is not.
func TestRefused(t *testing.T) {
	for _, test := range []struct {
		client, text string
		g            Gateway
		is           error
		want         string
	}{
		{"cursor", "{\"mcpServers\": {\n", started, nil, "f.json: line 2, column 1"},
		{"cursor", "[]", started, nil, "f.json: want an object with servers"},
		{"cursor", `{"mcpServers": []}`, started, nil, "f.json: mcpServers is not an object with servers"},
		{"cursor", `{"mcpServers": {"mcsh": {"command": "npx"}}}`, started, ErrTaken, `"mcsh" is another server there`},
		{"cursor", `{"mcpServers": {"mcsh": {"url": "https://other/mcp", "headers": {}}}}`, started, ErrTaken, `"mcsh" is another server there`},
		{"cursor", `{"mcpServers": {"mcsh": {"url": "https://other/mcp"}}}`, started, ErrTaken, `"mcsh" is another server there`},
		{"cursor", `{"mcpServers": {"mcsh": {"url": "https://other/mcp"}}}`, reached, ErrTaken, `"mcsh" is another server there`},
		{"cursor", `{}`, Gateway{Name: "a b"}, nil, `"a b" cannot be the name of a server`},
		{"codex", "a = 1\nb = = 2\n", started, nil, "f.toml: line 2, column 5"},
		{"codex", "mcp_servers = {a = {command = \"x\"}}\n", started, ErrForm, "cannot be written there"},
		{"codex", "mcp_servers.mcsh.command = \"mcsh\"\nmcp_servers.mcsh.args = [\"serve\"]\n", started, ErrForm, ""},
		{"codex", "[mcp_servers.mcsh]\ncommand = \"mcsh\"\nargs = [\"serve\"]\nenv = {A = \"1\"}\n", started, ErrForm, "such as env"},
		{"codex", "[mcp_servers.mcsh]\ncommand = \"mcsh\"\nargs = [\"serve\"]\n[mcp_servers.mcsh.env]\nA = \"1\"\n", started, ErrForm, ""},
	} {
		c := client(t, test.client)
		path := "f.json"
		if test.client == "codex" {
			path = "f.toml"
		}
		edit, err := c.Add(path, []byte(test.text), test.g, false)
		if err == nil || !strings.Contains(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) {
			t.Errorf("%q: got %v, want %q\n%s", test.text, err, test.want, edit.Data)
		}
	}
	other := []byte(`{"mcpServers": {"mcsh": {"command": "npx"}}}`)
	if edit, err := client(t, "cursor").Remove("f.json", other, Original{}, started); !errors.Is(err, ErrTaken) {
		t.Errorf("a server of another was taken out: %s, %v", edit.Data, err)
	}
	for _, address := range []string{`{"url": "https://other/mcp"}`, `{"url": "https://other/mcp", "headers": {"Authorization": "x"}}`} {
		file := []byte(`{"mcpServers": {"sentry": ` + address + `}}`)
		for _, g := range []Gateway{{Name: "sentry"}, {Name: "sentry", URL: reached.URL}} {
			if edit, err := client(t, "cursor").Remove("f.json", file, Original{}, g); !errors.Is(err, ErrTaken) {
				t.Errorf("a server of another was taken out: %s, %v", edit.Data, err)
			}
		}
	}
}

// TestKeepsMembers: what people have added to the entry stays when the gateway is reached otherwise.
func TestKeepsMembers(t *testing.T) {
	old := "{\"mcpServers\": {\n  \"mcsh\": {\n    \"command\": \"mcsh\", // mine\n    \"args\": [\"serve\"],\n    \"env\": {\"A\": \"1\"}\n  }\n}}\n"
	edit, err := client(t, "cursor").Add("f.json", []byte(old), reached, false)
	if err != nil || edit.Outcome != Replaced {
		t.Fatalf("%s, %v", edit.Outcome, err)
	}
	for _, want := range []string{`"env": {"A": "1"}`, `"url": "http://127.0.0.1:8808/mcp"`, "// mine"} {
		if !strings.Contains(string(edit.Data), want) {
			t.Errorf("%s is not in\n%s", want, edit.Data)
		}
	}
}

// TestShown: what is shown of a file holds no secret of it, and the entry in full.
func TestShown(t *testing.T) {
	text := "key = \"plant3d-a\" # plant3d-b\n[mcp_servers.mcsh]\nargs = [\"--toolhive-header\", \"a Authorization: Bearer plant3d-c\", \"--root\", \"/srv\"]\n[x]\ny = '''\nplant3d-d\n'''\nz = 'plant3d-e'\n"
	got := string(client(t, "codex").Shown("c.toml", []byte(text), "mcsh"))
	if strings.Contains(got, "plant3d") || !strings.Contains(got, "/srv") || !strings.Contains(got, "[x]") {
		t.Errorf("got\n%s", got)
	}
}

// FuzzGateway: whatever is in a file, an entry goes in and out or it is refused, and nothing else changes.
func FuzzGateway(f *testing.F) {
	for _, text := range jsonFiles {
		f.Add([]byte(text), false)
	}
	for _, text := range tomlFiles {
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, old []byte, isTOML bool) {
		c, path := client(t, "cursor"), "f.json"
		if isTOML {
			c, path = client(t, "codex"), filepath.Join("x", "f.toml")
		}
		added, err := c.Add(path, old, started, false)
		if err != nil || added.Outcome != Added {
			return
		}
		c.Shown(path, added.Data, "mcsh")
		out, err := c.Remove(path, added.Data, pastOf(old), started)
		if err != nil || out.Outcome != Removed || !bytes.Equal(out.Data, old) {
			t.Errorf("%v: got %q, want %q", err, out.Data, old)
		}
		if _, err := c.Remove(path, added.Data, Original{}, started); err != nil {
			t.Errorf("without a backup: %v", err)
		}
	})
}
