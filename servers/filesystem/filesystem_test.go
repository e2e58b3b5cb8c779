package filesystem_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/servers/filesystem"
	"github.com/mcsh-dev/mcsh/servers/servertest"
)

// tree writes files, by name, into a new directory.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "project")
	for name, text := range files {
		full := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func connect(t testing.TB, o filesystem.Options) *servertest.Client {
	t.Helper()
	server, err := filesystem.New(o)
	return servertest.Connect(t, server, err)
}

func TestReadTextFile(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	root := tree(t, map[string]string{
		"three.txt":   "one\ntwo\nthree\n",
		"open.txt":    "one\ntwo\nthree",
		"crlf.txt":    "one\r\ntwo\r\n",
		"blank.txt":   "\n\n\n",
		"empty.txt":   "",
		"long.txt":    long + "\n" + long + "\nend\n",
		"latin.txt":   "caf\xe9 \xff\n",
		"nul.bin":     "ab\x00cd",
		"late.txt":    strings.Repeat("a", 9000) + "\x00\n",
		"unicode.txt": "\u2028 <&> \U0001F600\n",
		"dir/x":       "x",
	})
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(root, "out")); err != nil {
		t.Fatal(err)
	}
	c := connect(t, filesystem.Options{Root: root})
	for _, tt := range []struct{ args, want string }{
		{`{"path":"three.txt"}`, "one\ntwo\nthree\n"},
		{`{"path":"three.txt","head":null,"tail":null}`, "one\ntwo\nthree\n"},
		{`{"path":"three.txt","head":1}`, "one\n"},
		{`{"path":"three.txt","head":2.0}`, "one\ntwo\n"},
		{`{"path":"three.txt","head":3}`, "one\ntwo\nthree\n"},
		{`{"path":"three.txt","head":99}`, "one\ntwo\nthree\n"},
		{`{"path":"three.txt","tail":1}`, "three\n"},
		{`{"path":"three.txt","tail":2}`, "two\nthree\n"},
		{`{"path":"three.txt","tail":3}`, "one\ntwo\nthree\n"},
		{`{"path":"three.txt","tail":99}`, "one\ntwo\nthree\n"},
		{`{"path":"open.txt"}`, "one\ntwo\nthree"},
		{`{"path":"open.txt","head":3}`, "one\ntwo\nthree"},
		{`{"path":"open.txt","tail":1}`, "three"},
		{`{"path":"open.txt","tail":2}`, "two\nthree"},
		{`{"path":"crlf.txt","tail":1}`, "two\r\n"},
		{`{"path":"blank.txt","tail":2}`, "\n\n"},
		{`{"path":"blank.txt","head":2}`, "\n\n"},
		{`{"path":"empty.txt"}`, ""},
		{`{"path":"empty.txt","tail":1}`, ""},
		{`{"path":"empty.txt","head":1}`, ""},
		{`{"path":"long.txt","head":1}`, long + "\n"},
		{`{"path":"long.txt","tail":1}`, "end\n"},
		{`{"path":"long.txt","tail":2}`, long + "\nend\n"},
		{`{"path":"late.txt","head":1}`, strings.Repeat("a", 9000) + "\x00\n"},
		{`{"path":"unicode.txt"}`, "\u2028 <&> \U0001F600\n"},
		{fmt.Sprintf(`{"path":%q}`, root+"/three.txt"), "one\ntwo\nthree\n"},
	} {
		r := c.Call(t, "read_text_file", tt.args)
		if r.Text != tt.want || r.Error || r.StructuredContent != nil || len(r.Content) != 1 || r.Meta["mcsh/text"] != nil {
			t.Errorf("%s: got %.200q (error %v), want %.80q", tt.args, r.Text, r.Error, tt.want)
		}
	}
	for _, tt := range []struct{ args, want string }{
		{`{"path":"three.txt","head":1,"tail":1}`, "InvalidArgument: head and tail exclude each other; give one of them"},
		{`{"path":"three.txt","head":0}`, "InvalidArgument: head is 0, want at least 1; leave it out to read the whole file"},
		{`{"path":"three.txt","tail":-3}`, "InvalidArgument: tail is -3, want at least 1; leave it out to read the whole file"},
		{`{"path":"three.txt","head":"1"}`, `InvalidArgument: argument "head": want an integer, got "1"`},
		{`{"path":"three.txt","lines":1}`, `InvalidArgument: unknown argument "lines"; known: path, head, tail`},
		{`{}`, `InvalidArgument: argument "path" is missing`},
		{`{"path":null}`, `InvalidArgument: argument "path" is missing`},
		{`{"path":""}`, `InvalidArgument: the path is empty; "." is the root`},
		{`{"path":7}`, `InvalidArgument: argument "path": want a string, got 7`},
		{`{"path":"dir"}`, `InvalidArgument: "dir" is a directory; list it instead`},
		{`{"path":"pipe"}`, `InvalidArgument: "pipe" is a named pipe; only regular files can be read`},
		{`{"path":"no.txt"}`, `NotFound: "no.txt" does not exist; list its directory to see what does`},
		{`{"path":"nul.bin"}`, `InvalidArgument: "nul.bin" is a binary file (a NUL byte at offset 2); only text files can be read; UTF-16 text has to be converted first`},
		{`{"path":"nul.bin","tail":1}`, `InvalidArgument: "nul.bin" is a binary file (a NUL byte at offset 2); only text files can be read; UTF-16 text has to be converted first`},
		{`{"path":"../x"}`, `PathEscape: "../x" leads out of the root; paths are relative to the root, ".." cannot leave it`},
		{`{"path":"/etc/passwd"}`, `PathEscape: "/etc/passwd" is outside of the root; use a path relative to the root`},
		{`{"path":"out"}`, `PathEscape: "out" leads out of the root through a symbolic link; only links that are relative and stay inside the root are followed`},
	} {
		r := c.Call(t, "read_text_file", tt.args)
		if r.Text != tt.want || !r.Error {
			t.Errorf("%s:\n got %s (error %v)\nwant %s", tt.args, r.Text, r.Error, tt.want)
		}
	}
	r := c.Call(t, "read_text_file", `{"path":"latin.txt"}`)
	if got, want := r.Text, "caf\ufffd \ufffd\n"; got != want {
		t.Errorf("invalid UTF-8: got %q, want %q", got, want)
	}
	if diff := cmp.Diff(map[string]any{"replaced": 2.0}, r.Meta["mcsh/text"]); diff != "" {
		t.Errorf("invalid UTF-8: _meta (-want +got):\n%s", diff)
	}
}

func TestReadLimit(t *testing.T) {
	root := tree(t, map[string]string{
		"big.txt":  strings.Repeat("0123456789abcde\n", 1000),
		"fits.txt": strings.Repeat("x", 100),
	})
	c := connect(t, filesystem.Options{Root: root, MaxBytes: 100})
	for _, tt := range []struct{ args, want string }{
		{`{"path":"big.txt"}`, `InvalidArgument: at most 100 bytes are read at once, "big.txt" has 16000 bytes; read a part of it with head or tail`},
		{`{"path":"big.txt","head":7}`, `InvalidArgument: at most 100 bytes are read at once, "big.txt" has more before the end of line 8; read a part of it with head or tail`},
		{`{"path":"big.txt","tail":7}`, `InvalidArgument: at most 100 bytes are read at once, "big.txt" has more in its last 7 lines; read a part of it with head or tail`},
	} {
		if r := c.Call(t, "read_text_file", tt.args); r.Text != tt.want || !r.Error {
			t.Errorf("%s:\n got %s\nwant %s", tt.args, r.Text, tt.want)
		}
	}
	for args, want := range map[string]int{
		`{"path":"fits.txt"}`: 100, `{"path":"big.txt","head":6}`: 96, `{"path":"big.txt","tail":6}`: 96,
	} {
		if r := c.Call(t, "read_text_file", args); len(r.Text) != want || r.Error {
			t.Errorf("%s: %d bytes, want %d", args, len(r.Text), want)
		}
	}
	if _, err := filesystem.New(filesystem.Options{Root: root, MaxBytes: -1}); err == nil {
		t.Error("a negative limit was accepted")
	}
	if _, err := filesystem.New(filesystem.Options{Root: root + "/none"}); err == nil {
		t.Error("a missing root was accepted")
	}
}

// TestTailOfSparse reads the end of a file that is much larger than could be read in a test.
func TestTailOfSparse(t *testing.T) {
	root := tree(t, map[string]string{"f": "first\n" + strings.Repeat("x", 10_000)})
	name := filepath.Join(root, "f")
	const size = 1 << 40
	if err := os.Truncate(name, size); err != nil {
		t.Skipf("the file system has no sparse files: %v", err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("\nlast but one\nlast\n"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	c := connect(t, filesystem.Options{Root: root})
	for args, want := range map[string]string{
		`{"path":"f","tail":1}`: "last\n",
		`{"path":"f","tail":2}`: "last but one\nlast\n",
		`{"path":"f","head":1}`: "first\n",
	} {
		if r := c.Call(t, "read_text_file", args); r.Text != want {
			t.Errorf("%s: got %.100q, want %q", args, r.Text, want)
		}
	}
	if r := c.Call(t, "read_text_file", `{"path":"f","tail":3}`); !r.Error || !strings.Contains(r.Text, "67108864") {
		t.Errorf("a line of a terabyte: got %.200q", r.Text)
	}
}

func listTree(t testing.TB) string {
	root := tree(t, map[string]string{
		"b.txt": "12345", "a.txt": "", "Z.txt": "", "src/main.go": "x", "src/sub/deep.go": "x", "src/sub/skip.log": "x",
		".git/config": "x", "node_modules/m/i.js": "x", "target/o": "x", "__pycache__/c": "x", ".filesystem/1": "x", ".mcsh/a": "x",
		".gitignore": "*.tmp\n/private/\n", "x.tmp": "x", "private/p": "x", "new\nline": "",
	})
	if err := os.Mkdir(filepath.Join(root, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("src", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestListDirectory(t *testing.T) {
	c := connect(t, filesystem.Options{Root: listTree(t)})
	r := c.Call(t, "list_directory", `{"path":"."}`)
	want := "[FILE] .gitignore\n[FILE] Z.txt\n[FILE] a.txt\n[FILE] b.txt\n[DIR] empty\n[LINK] link\n[FILE] new\\nline\n[DIR] src\n"
	if r.Text != want {
		t.Errorf("got\n%s\nwant\n%s", r.Text, want)
	}
	entries := r.StructuredContent.(map[string]any)["entries"].([]any)
	if len(entries) != 8 {
		t.Fatalf("got %d entries, want 8", len(entries))
	}
	b := entries[3].(map[string]any)
	delete(b, "modified") // checked by the output schema
	if diff := cmp.Diff(map[string]any{"name": "b.txt", "path": "b.txt", "type": "file", "size": 5.0}, b); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for args, want := range map[string]string{
		`{"path":"src"}`:                          "[FILE] main.go\n[DIR] sub\n",
		`{"path":".","limit":2}`:                  "[FILE] .gitignore\n[FILE] Z.txt\n",
		`{"path":".","limit":2,"cursor":"Z.txt"}`: "[FILE] a.txt\n[FILE] b.txt\n",
		`{"path":".","limit":9,"cursor":"link"}`:  "[FILE] new\\nline\n[DIR] src\n",
		`{"path":".","cursor":"/%"}`:              `InvalidArgument: the cursor "/%" is not one; give next_cursor of the list before`,
		`{"path":".","limit":0}`:                  `InvalidArgument: limit is 0, want at least 1; leave it out to list all`,
		`{"path":"link/sub"}`:                     "[FILE] deep.go\n[FILE] skip.log\n",
		`{"path":"empty"}`:                        "",
		`{"path":"private"}`:                      "[FILE] p\n", // asked for by name
		`{"path":"node_modules"}`:                 "[DIR] m\n",
		`{"path":"a.txt"}`:                        `InvalidArgument: "a.txt" is not a directory; name a directory`,
		`{"path":"nope"}`:                         `NotFound: "nope" does not exist; list its directory to see what does`,
		`{"path":".."}`:                           `PathEscape: ".." leads out of the root; paths are relative to the root, ".." cannot leave it`,
	} {
		if r := c.Call(t, "list_directory", args); r.Text != want || r.Error != strings.Contains(want, ": ") {
			t.Errorf("%s:\n got %s\nwant %s", args, r.Text, want)
		}
	}
}

// TestListPagesOfOddNames: each page begins behind the one before, also after a name that is not UTF-8.
func TestListPagesOfOddNames(t *testing.T) {
	names := []string{"a", "b\xe9", "b\xff\xff", "c\xff", "é", "\xfe"}
	files := map[string]string{}
	for _, name := range names {
		files[name] = name
	}
	c := connect(t, filesystem.Options{Root: tree(t, files)})
	cursor := ""
	for i, name := range names {
		r := c.Call(t, "list_directory", fmt.Sprintf(`{"path":".","limit":1,"cursor":%q}`, cursor))
		page := r.StructuredContent.(map[string]any)
		got := page["entries"].([]any)[0].(map[string]any)
		if want := strings.ToValidUTF8(name, "\ufffd"); strings.ReplaceAll(got["name"].(string), "\ufffd\ufffd", "\ufffd") != want {
			t.Errorf("page %d has %v, want %q", i+1, got, want)
		}
		next, more := page["next_cursor"]
		if more != (i < len(names)-1) {
			t.Fatalf("page %d: next_cursor is %v", i+1, next)
		}
		cursor, _ = next.(string)
	}
}

func TestDirectoryTree(t *testing.T) {
	c := connect(t, filesystem.Options{Root: listTree(t)})
	const sub = `{"name":"sub","path":"src/sub","type":"directory","children":[` +
		`{"name":"deep.go","path":"src/sub/deep.go","type":"file"},{"name":"skip.log","path":"src/sub/skip.log","type":"file"}]}`
	for _, tt := range []struct{ args, want string }{
		{`{"path":"src"}`, `{"name":"src","path":"src","type":"directory","children":[{"name":"main.go","path":"src/main.go","type":"file"},` + sub + `]}`},
		{`{"path":"src","exclude":["*.log","/src/main.go"]}`, `{"name":"src","path":"src","type":"directory","children":[` +
			`{"name":"sub","path":"src/sub","type":"directory","children":[{"name":"deep.go","path":"src/sub/deep.go","type":"file"}]}]}`},
		{`{"path":".","max_depth":1,"exclude":["*","!src/","!link","!empty"]}`, `{"name":"project","path":".","type":"directory","children":[` +
			`{"name":"empty","path":"empty","type":"directory","unread":"max_depth"},` +
			`{"name":"link","path":"link","type":"link"},` +
			`{"name":"src","path":"src","type":"directory","unread":"max_depth"}]}`},
		{`{"path":"empty"}`, `{"name":"empty","path":"empty","type":"directory","children":[]}`},
	} {
		r := c.Call(t, "directory_tree", tt.args)
		if r.Text != tt.want || r.Error {
			t.Errorf("%s:\n got %s\nwant %s", tt.args, r.Text, tt.want)
			continue
		}
		var text any
		if err := json.Unmarshal([]byte(r.Text), &text); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text, r.StructuredContent); diff != "" {
			t.Errorf("%s: text and structured content differ:\n%s", tt.args, diff)
		}
	}
	for _, tt := range []struct{ args, want string }{
		{`{"path":"src","max_depth":0}`, "InvalidArgument: max_depth is 0, want 1 to 200; start deeper to see more"},
		{`{"path":"src","exclude":["a\nb"]}`, `InvalidArgument: the exclude pattern "a\nb" contains a newline; give an array element per pattern`},
		{`{"path":"src","exclude":"a"}`, `InvalidArgument: argument "exclude": want an array whose elements are each a string, got "a"`},
		{`{"path":"nope"}`, `NotFound: "nope" does not exist; list its directory to see what does`},
		{`{"path":"b.txt"}`, `InvalidArgument: "b.txt" is not a directory; name a directory`},
	} {
		if r := c.Call(t, "directory_tree", tt.args); r.Text != tt.want || !r.Error {
			t.Errorf("%s:\n got %s\nwant %s", tt.args, r.Text, tt.want)
		}
	}
}

// TestDeepTree has directories nested more deeply than JSON readers go, and a deepest tree that a client can read.
func TestDeepTree(t *testing.T) {
	root := tree(t, map[string]string{strings.Repeat("d/", 300) + "f": "x"})
	c := connect(t, filesystem.Options{Root: root})
	r := c.Call(t, "directory_tree", `{"path":"."}`)
	if r.Error || strings.Count(r.Text, `"children"`) != 200 || !strings.Contains(r.Text, `"unread":"max_depth"`) {
		t.Errorf("got %.300s, %d levels", r.Text, strings.Count(r.Text, `"children"`))
	}
}
