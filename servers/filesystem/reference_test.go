package filesystem_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/servers/filesystem"
	"github.com/mcsh-dev/mcsh/servers/servertest"
)

// odd is a tree of files as they are met.
var odd = map[string]string{
	"a.txt": "one\ntwo\nthree\n", "open.txt": "one\ntwo", "crlf.txt": "one\r\ntwo\r\n", "empty": "", "latin": "caf\xe9\n", "bin": "a\x00b\n",
	"code.go": "func a() {\n    if x {\n        y()\n    }\n}\n", "fence.md": "```\na\n```\n", "pic.PNG": "png", "song.mp3": "mp3",
	"node_modules/m/i.js": "x", ".git/HEAD": "x", ".gitignore": "*.log\n", "x.log": "log", "dist/o": "x",
	"src/main.go": "x", "src/sub/deep.go": "x", "src/sub/note.md": strings.Repeat("x", 2000), "ünï.txt": "x",
	"deep/er/<\"quoted\">.txt": "x",
}

// TestReference makes the same calls to the npm server and to ours, each on a tree of its own, and compares the answers
// and the trees.
func TestReference(t *testing.T) {
	script := filepath.Join(parttest.Packages(t, "@modelcontextprotocol/server-filesystem"), "@modelcontextprotocol/server-filesystem/dist/index.js")
	theirs, ours := tree(t, odd), tree(t, odd)
	cmd := exec.Command("node", script, theirs)
	npm, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer npm.Close()
	server, err := filesystem.New(filesystem.Options{Reference: true, Directories: []string{ours}})
	own := servertest.Connect(t, server, err)
	for _, tool := range []string{"read_file", "read_media_file", "read_multiple_files", "list_directory_with_sizes", "search_files", "get_file_info", "list_allowed_directories"} {
		if own.Tools[tool] == nil {
			t.Errorf("there is no tool %s", tool)
		}
	}
	for _, tt := range []struct{ tool, args string }{
		{"read_text_file", `{"path":"ROOT/a.txt"}`},
		{"read_file", `{"path":"a.txt"}`},
		{"read_text_file", `{"path":"ROOT/a.txt","head":2}`},
		{"read_text_file", `{"path":"ROOT/a.txt","head":9}`},
		{"read_text_file", `{"path":"ROOT/a.txt","tail":1}`},
		{"read_text_file", `{"path":"ROOT/a.txt","tail":2}`},
		{"read_text_file", `{"path":"ROOT/a.txt","tail":9}`},
		{"read_text_file", `{"path":"ROOT/open.txt","tail":1}`},
		{"read_text_file", `{"path":"ROOT/open.txt","head":2}`},
		{"read_text_file", `{"path":"ROOT/crlf.txt","head":1}`},
		{"read_text_file", `{"path":"ROOT/crlf.txt","tail":2}`},
		{"read_text_file", `{"path":"ROOT/crlf.txt"}`},
		{"read_text_file", `{"path":"ROOT/empty","tail":1}`},
		{"read_text_file", `{"path":"ROOT/latin"}`},
		{"read_text_file", `{"path":"ROOT/bin"}`},
		{"read_text_file", `{"path":"ROOT/a.txt","head":1,"tail":1}`},
		{"read_text_file", `{"path":"ROOT/none"}`},
		{"read_text_file", `{"path":"/etc/passwd"}`},
		{"read_text_file", `{"path":"ROOT/../x"}`},
		{"read_media_file", `{"path":"ROOT/pic.PNG"}`},
		{"read_media_file", `{"path":"ROOT/song.mp3"}`},
		{"read_media_file", `{"path":"ROOT/a.txt"}`},
		{"read_multiple_files", `{"paths":["ROOT/a.txt","ROOT/open.txt","ROOT/empty"]}`},
		{"list_directory_with_sizes", `{"path":"ROOT/src/sub","sortBy":"size"}`},
		{"list_directory_with_sizes", `{"path":"ROOT/src"}`},
		{"search_files", `{"path":"ROOT","pattern":"**/*.go"}`},
		{"search_files", `{"path":"ROOT/src","pattern":"*.go"}`},
		{"search_files", `{"path":"ROOT","pattern":"**/*.{md,go}","excludePatterns":["src/sub/**"]}`},
		{"search_files", `{"path":"ROOT","pattern":"*.none"}`},
		{"list_allowed_directories", `{}`},
		{"write_file", `{"path":"ROOT/new.txt","content":"x\n"}`},
		{"write_file", `{"path":"ROOT/a.txt","content":"one\ntwo\n"}`},
		{"create_directory", `{"path":"ROOT/d/e"}`},
		{"create_directory", `{"path":"ROOT/d"}`},
		{"directory_tree", `{"path":"ROOT/d"}`},
		{"directory_tree", `{"path":"ROOT/d/e"}`},
		{"directory_tree", `{"path":"ROOT/deep"}`},
		{"directory_tree", `{"path":"ROOT/deep","excludePatterns":["er"]}`},
		{"move_file", `{"source":"ROOT/new.txt","destination":"ROOT/d/new.txt"}`},
		{"move_file", `{"source":"ROOT/a.txt","destination":"ROOT/d/new.txt"}`},
		{"edit_file", `{"path":"ROOT/none","edits":[]}`},
		{"edit_file", `{"path":"ROOT/a.txt","edits":[{"oldText":"none","newText":"x"}]}`},
	} {
		root := func(dir string) string { return strings.ReplaceAll(tt.args, "ROOT", dir) }
		want, err := npm.CallTool(t.Context(), &mcp.CallToolParams{Name: tt.tool, Arguments: json.RawMessage(root(theirs))})
		if err != nil {
			t.Fatalf("%s %s: %v", tt.tool, tt.args, err)
		}
		got := own.Call(t, tt.tool, root(ours))
		if got.Error != want.IsError {
			t.Errorf("%s %s: got %v (error %v), want error %v", tt.tool, tt.args, got.Text, got.Error, want.IsError)
			continue
		}
		if diff := cmp.Diff(plain(t, want.Content, theirs), plain(t, got.Content, ours)); diff != "" && !got.Error {
			t.Errorf("%s %s (-npm +ours):\n%s", tt.tool, tt.args, diff)
		}
	}
	edits := func(dir string) string {
		return strings.ReplaceAll(`{"path":"ROOT/code.go","edits":[{"oldText":"if x {\n  y()\n}","newText":"if z {\n  w()\n    v()\n}"},{"oldText":"func a","newText":"func b"}]}`, "ROOT", dir)
	}
	if _, err := npm.CallTool(t.Context(), &mcp.CallToolParams{Name: "edit_file", Arguments: json.RawMessage(edits(theirs))}); err != nil {
		t.Fatal(err)
	}
	if r := own.Call(t, "edit_file", edits(ours)); r.Error || !strings.HasPrefix(r.Text, "```diff\n") {
		t.Errorf("edit_file: %s", r.Text)
	}
	if diff := cmp.Diff(contents(t, theirs), contents(t, ours)); diff != "" {
		t.Errorf("the trees (-npm +ours):\n%s", diff)
	}
}

// plain returns content as JSON, with ROOT for the root.
func plain(t *testing.T, content []mcp.Content, root string) string {
	t.Helper()
	data, err := json.MarshalIndent(content, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(data), root, "ROOT")
}

// contents returns the files of callers below root.
func contents(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(name string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			if err == nil && (e.Name() == ".mcsh" || e.Name() == ".filesystem") {
				return filepath.SkipDir
			}
			return err
		}
		data, err := os.ReadFile(name)
		files[strings.TrimPrefix(name, root)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestGlobs: a pattern that would take long is refused, and one that is wrong too.
func TestGlobs(t *testing.T) {
	c := connect(t, filesystem.Options{Reference: true, Directories: []string{tree(t, map[string]string{strings.Repeat("a", 200): "x"})}})
	for pattern, want := range map[string]string{
		strings.Repeat("*a", 400):         "No matches found",
		strings.Repeat("**/", 300) + "b":  "No matches found",
		strings.Repeat("{a,a}", 10) + "b": "No matches found",
		strings.Repeat("{a,a}", 11) + "b": "InvalidArgument: ",
		"[a":                              "InvalidArgument: ",
		strings.Repeat("a", 1001):         "InvalidArgument: ",
	} {
		args, err := json.Marshal(map[string]any{"path": ".", "pattern": pattern})
		if err != nil {
			t.Fatal(err)
		}
		if r := c.Call(t, "search_files", string(args)); !strings.HasPrefix(r.Text, want) {
			t.Errorf("%.20q: got %.200q, want %q", pattern, r.Text, want)
		}
	}
}
