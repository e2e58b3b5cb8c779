package filesystem_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/servers/filesystem"
)

// annotated are calls that show the effects of a tool: each is made twice, after the calls before.
var annotated = []struct {
	before []call
	tool   string
	args   string
}{
	{nil, "read_text_file", `{"path":"a.txt"}`},
	{nil, "list_directory", `{"path":"."}`},
	{nil, "directory_tree", `{"path":"."}`},
	{[]call{{"delete_file", `{"path":"a.txt"}`, ""}}, "list_trash", `{}`},
	{[]call{{"delete_file", `{"path":"a.txt"}`, ""}}, "search_file", `{"path":"a.txt"}`},
	{nil, "create_file", `{"path":"new/b.txt","content":"b"}`},
	{nil, "create_directory", `{"path":"new/dir"}`},
	{nil, "write_file", `{"path":"a.txt","content":"b"}`},
	{nil, "write_file", `{"path":"new/b.txt","content":"b"}`},
	{nil, "edit_file", `{"path":"a.txt","edits":[{"oldText":"one","newText":"one more"}]}`},
	{nil, "move_file", `{"source":"a.txt","destination":"new/b.txt"}`},
	{nil, "delete_file", `{"path":"a.txt"}`},
	{[]call{{"delete_file", `{"path":"a.txt"}`, ""}}, "restore_file", `{"id":1}`},
	{[]call{{"write_file", `{"path":"a.txt","content":"2"}`, ""}, {"write_file", `{"path":"a.txt","content":"3"}`, ""}}, "undo_file", `{"path":"a.txt"}`},
	{[]call{{"write_file", `{"path":"a.txt","content":"2"}`, ""}, {"write_file", `{"path":"a.txt","content":"3"}`, ""}, {"undo_file", `{"path":"a.txt","versions":2}`, ""}}, "redo_file", `{"path":"a.txt"}`},
}

var annotatedReference = []string{
	`read_file {"path":"a.txt"}`, `read_text_file {"path":"a.txt"}`, `read_media_file {"path":"a.txt"}`, `read_multiple_files {"paths":["a.txt"]}`,
	`list_directory {"path":"."}`, `list_directory_with_sizes {"path":"."}`, `directory_tree {"path":"."}`, `search_files {"path":".","pattern":"*"}`,
	`get_file_info {"path":"a.txt"}`, `list_allowed_directories {}`, `write_file {"path":"a.txt","content":"b"}`,
	`edit_file {"path":"a.txt","edits":[{"oldText":"one","newText":"one more"}]}`, `create_directory {"path":"new"}`, `move_file {"source":"a.txt","destination":"b.txt"}`,
}

// effects are what calls of a tool did.
type effects struct{ changes, destroys, repeats bool }

// TestAnnotations: the annotations of each tool say what its calls do. A tool only reads if nothing in the directory changes;
// it is destructive if a file or its text goes; it is idempotent if a second call succeeds too and changes nothing more, not
// even a record.
func TestAnnotations(t *testing.T) {
	did := map[bool]map[string]effects{false: {}, true: {}}
	for _, row := range annotated {
		o := filesystem.Options{Root: tree(t, map[string]string{"a.txt": "one"}), Backup: true}
		did[false][row.tool] = did[false][row.tool].and(observe(t, o, row.before, row.tool, row.args))
	}
	for _, row := range annotatedReference {
		name, args, _ := strings.Cut(row, " ")
		o := filesystem.Options{Root: tree(t, map[string]string{"a.txt": "one"}), Reference: true}
		did[true][name] = observe(t, o, nil, name, args)
	}
	for reference, done := range did {
		for _, tool := range connect(t, filesystem.Options{Root: t.TempDir(), Backup: !reference, Reference: reference}).Tools {
			d, ok := done[tool.Name]
			if !ok {
				t.Errorf("no row calls %s", tool.Name)
			}
			a := tool.Annotations
			says := effects{changes: !a.ReadOnlyHint, destroys: a.DestructiveHint != nil && *a.DestructiveHint, repeats: a.IdempotentHint}
			if says != d || *a.OpenWorldHint {
				t.Errorf("reference %t, %s: annotated %+v, its calls did %+v", reference, tool.Name, says, d)
			}
		}
	}
}

// and joins the effects of two calls of a tool; the zero value is none yet.
func (e effects) and(more effects) effects {
	if e == (effects{}) {
		return more
	}
	return effects{e.changes || more.changes, e.destroys || more.destroys, e.repeats && more.repeats}
}

// observe makes a call twice and looks at what it did.
func observe(t *testing.T, o filesystem.Options, before []call, tool, args string) effects {
	t.Helper()
	c := connect(t, o)
	for _, b := range before {
		if r := c.Call(t, b.tool, b.args); r.Error {
			t.Fatalf("%s: %s", b.tool, r.Text)
		}
	}
	old, mine := everything(t, o.Root), contents(t, o.Root)
	if r := c.Call(t, tool, args); r.Error {
		t.Errorf("%s %s: %s", tool, args, r.Text)
	}
	first, now := everything(t, o.Root), contents(t, o.Root)
	again := c.Call(t, tool, args)
	e := effects{changes: !maps.Equal(old, first), repeats: !again.Error && maps.Equal(first, everything(t, o.Root))}
	for name, text := range mine {
		if after, ok := now[name]; !ok || after != text {
			e.destroys = true
		}
	}
	return e
}

// everything returns all files and directories below root, with the records of the server.
func everything(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(name string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			all[name] = "a directory"
			return err
		}
		data, err := os.ReadFile(name)
		all[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
