package filesystem_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/servers/filesystem"
)

// A call is one line of a story: a tool, its arguments and its text. "T" stands for a time.
type call struct{ tool, args, want string }

var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// story makes calls one after another. A want that begins with a kind of error is an error.
func story(t *testing.T, o filesystem.Options, calls []call) {
	t.Helper()
	c := connect(t, o)
	for i, s := range calls {
		r := c.Call(t, s.tool, s.args)
		got := times.ReplaceAllString(r.Text, "T")
		failed := regexp.MustCompile(`^[A-Z][A-Za-z]+: `).MatchString(s.want)
		if got != s.want || r.Error != failed {
			t.Errorf("call %d, %s %s:\n got %q (error %v)\nwant %q", i+1, s.tool, s.args, got, r.Error, s.want)
		}
	}
}

func TestWriting(t *testing.T) {
	root := tree(t, map[string]string{"old.txt": "old\n"})
	story(t, filesystem.Options{Root: root}, []call{
		{"create_file", `{"path":"a/b.txt","content":"x\n"}`, "created a/b.txt (2 bytes)\n"},
		{"create_file", `{"path":"a/b.txt","content":"y"}`, `AlreadyExists: "a/b.txt" exists; replace it with write_file, or a part of it with edit_file`},
		{"read_text_file", `{"path":"a/b.txt"}`, "x\n"},
		{"write_file", `{"path":"a/b.txt","content":""}`, "wrote a/b.txt (0 bytes)\n"},
		{"write_file", `{"path":"old.txt","content":"é"}`, "wrote old.txt (2 bytes)\n"},
		{"write_file", `{"path":"../x","content":""}`, `PathEscape: "../x" leads out of the root; paths are relative to the root, ".." cannot leave it`},
		{"write_file", `{"path":"a","content":""}`, `InvalidArgument: "a" is a directory; name a file in it`},
		{"write_file", `{"path":"b"}`, `InvalidArgument: argument "content" is missing`},
		{"create_directory", `{"path":"d/e/"}`, "created d/e\n"},
		{"create_directory", `{"path":"d/e"}`, "d/e exists\n"},
		{"create_directory", `{"path":"old.txt"}`, `AlreadyExists: "old.txt" exists and is not a directory`},
		{"move_file", `{"source":"a/b.txt","destination":"d/e/c.txt"}`, "moved a/b.txt to d/e/c.txt\n"},
		{"move_file", `{"source":"old.txt","destination":"d/e/c.txt"}`, `AlreadyExists: "d/e/c.txt" exists; move it or delete it first`},
		{"move_file", `{"source":"none","destination":"x"}`, `NotFound: "none" does not exist; list its directory to see what does`},
		{"delete_file", `{"path":"d"}`, "deleted d: entry 1 of the trash\n"},
		{"delete_file", `{"path":"old.txt"}`, "deleted old.txt: entry 2 of the trash\n"},
		{"delete_file", `{"path":"."}`, `InvalidArgument: "." is the root, which cannot be moved or deleted; name a file or directory in it`},
		{"list_trash", `{}`, "2 [FILE] old.txt (T)\n1 [DIR] d (T)\n"},
		{"list_trash", `{"limit":1}`, "2 [FILE] old.txt (T)\n"},
		{"list_trash", `{"limit":1,"cursor":2}`, "1 [DIR] d (T)\n"},
		{"search_file", `{"path":"a/b.txt"}`, "T moved to d/e/c.txt\nT deleted: entry 1 of the trash\n"},
		{"restore_file", `{"id":1}`, "restored d\n"},
		{"search_file", `{"path":"a/b.txt"}`, "T moved to d/e/c.txt\nT deleted: entry 1 of the trash\nT restored at d/e/c.txt\n"},
		{"search_file", `{"path":"d"}`, "T deleted: entry 1 of the trash\nT restored at d\nd exists\n"},
		{"search_file", `{"path":"never"}`, `NotFound: "never" does not exist, and no record says that it ever did`},
		{"restore_file", `{"id":1}`, "NotFound: the trash has no entry 1; list_trash lists all entries"},
		{"create_file", `{"path":"old.txt","content":""}`, "created old.txt (0 bytes)\n"},
		{"restore_file", `{"id":2}`, `AlreadyExists: "old.txt" exists; move it or delete it first`},
		{"delete_file", `{"path":"old.txt"}`, "deleted old.txt: entry 3 of the trash\n"},
		{"list_directory", `{"path":"."}`, "[DIR] a\n[DIR] d\n"},
	})
}

func TestEditing(t *testing.T) {
	root := tree(t, map[string]string{
		"f": "one\ntwo\nthree\n", "crlf": "one\r\ntwo\r\n", "bin": "a\x00b", "latin": "caf\xe9\nx\n", "twice": "aaa",
	})
	story(t, filesystem.Options{Root: root}, []call{
		{"edit_file", `{"path":"f","edits":[{"oldText":"two","newText":"2"}],"dryRun":true}`, "--- f\n+++ f\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"},
		{"read_text_file", `{"path":"f"}`, "one\ntwo\nthree\n"},
		{"edit_file", `{"path":"f","edits":[{"oldText":"three\n","newText":""},{"oldText":"one","newText":"two"}]}`, "--- f\n+++ f\n@@ -1,3 +1,2 @@\n-one\n-two\n-three\n+two\n+two\n"},
		{"edit_file", `{"path":"f","edits":[{"oldText":"two","newText":"x"}]}`, `InvalidArgument: edit 1: oldText occurs more than once in "f"; add text around it that makes it unique`},
		{"edit_file", `{"path":"f","edits":[{"oldText":"two\ntwo","newText":"x"},{"oldText":"none","newText":"x"}]}`, `NotFound: edit 2: oldText does not occur in "f"; read the file again: blanks and line ends count`},
		{"edit_file", `{"path":"f","edits":[{"oldText":"two\nt","newText":"x"},{"oldText":"\ntwo\n","newText":"x"}]}`, `InvalidArgument: edits 1 and 2 overlap; join them to one edit`},
		{"edit_file", `{"path":"f","edits":[{"oldText":"","newText":"x"}]}`, `InvalidArgument: edit 1: oldText is empty; give the text to replace`},
		{"edit_file", `{"path":"f","edits":[]}`, `InvalidArgument: there are 0 edits, want 1 to 1000`},
		{"edit_file", `{"path":"f","edits":[{"oldText":"two\ntwo","newText":"two\ntwo"}]}`, "nothing changes\n"},
		{"read_text_file", `{"path":"f"}`, "two\ntwo\n"},
		{"edit_file", `{"path":"twice","edits":[{"oldText":"aa","newText":"b"}]}`, `InvalidArgument: edit 1: oldText occurs more than once in "twice"; add text around it that makes it unique`},
		{"edit_file", `{"path":"crlf","edits":[{"oldText":"one\ntwo","newText":"1\n2\n3"}]}`, "--- crlf\n+++ crlf\n@@ -1,2 +1,3 @@\n-one\r\n-two\r\n+1\r\n+2\r\n+3\r\n"},
		{"read_text_file", `{"path":"crlf"}`, "1\r\n2\r\n3\r\n"},
		{"edit_file", `{"path":"crlf","edits":[{"oldText":"2","newText":"2\n2"}]}`, "--- crlf\n+++ crlf\n@@ -1,3 +1,4 @@\n 1\r\n 2\r\n+2\r\n 3\r\n"},
		{"edit_file", `{"path":"bin","edits":[{"oldText":"a","newText":"b"}]}`, `InvalidArgument: "bin" is a binary file (a NUL byte at offset 1); only text files can be edited`},
		{"edit_file", `{"path":"none","edits":[{"oldText":"a","newText":"b"}]}`, `NotFound: "none" does not exist; make it with create_file`},
		{"edit_file", `{"path":"latin","edits":[{"oldText":"x","newText":"y"}]}`, "--- latin\n+++ latin\n@@ -1,2 +1,2 @@\n caf\ufffd\n-x\n+y\n"},
	})
	if data, err := os.ReadFile(filepath.Join(root, "latin")); err != nil || string(data) != "caf\xe9\ny\n" {
		t.Errorf("bytes that are not UTF-8 have changed: %q, %v", data, err)
	}
	long := tree(t, map[string]string{"f": "a" + strings.Repeat("\n", 1_000_001) + "x", "g": strings.Repeat("\n", 100) + "x" + strings.Repeat("\n", 100)})
	story(t, filesystem.Options{Root: long}, []call{
		{"edit_file", `{"path":"f","edits":[{"oldText":"a","newText":"b"},{"oldText":"x","newText":"y"}]}`, "… no diff of 2000002 lines\n"},
		{"edit_file", `{"path":"f","edits":[{"oldText":"y","newText":"z"}],"dryRun":true}`, "--- f\n+++ f\n@@ -999999,4 +999999,4 @@\n \n \n \n-y\n\\ No newline at end of file\n+z\n\\ No newline at end of file\n"},
		{"edit_file", `{"path":"g","edits":[{"oldText":"x","newText":"y\nz"}]}`, "--- g\n+++ g\n@@ -98,7 +98,8 @@\n \n \n \n-x\n+y\n+z\n \n \n \n"},
	})
	big := tree(t, map[string]string{"f": strings.Repeat("x", 101)})
	story(t, filesystem.Options{Root: big, MaxBytes: 100}, []call{
		{"edit_file", `{"path":"f","edits":[{"oldText":"y","newText":"x"}]}`, `InvalidArgument: "f" has 101 bytes, at most 100 can be edited; change it with other tools`},
	})
}

// TestDiffsOfRepeatedLines: the diffs of texts whose lines are much alike have three lines before and after each change, unless
// the file begins or ends there, and git can apply them.
func TestDiffsOfRepeatedLines(t *testing.T) {
	const seven = "1\n2\n3\n4\n5\n6\n7\n"
	old := map[string]string{"x": strings.Repeat("x\n", 10) + seven, "y": seven + strings.Repeat("x\n", 10)}
	want := map[string]string{"x": strings.Repeat("x\n", 9) + seven, "y": seven + strings.Repeat("x\n", 9)}
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		var lines []string
		for range 5 + random.IntN(60) {
			lines = append(lines, []string{"x\n", "x\n", "y\n", "}\n"}[random.IntN(4)])
		}
		name := strconv.Itoa(n)
		old[name] = strings.Join(lines, "")
		for range 1 + random.IntN(2) {
			at := random.IntN(len(lines) - 2)
			lines = slices.Replace(lines, at, at+random.IntN(3), []string{"x\n", "y\n", "z\n"}[random.IntN(3)])
		}
		if want[name] = strings.Join(lines, ""); want[name] == old[name] {
			want[name] += "x\n"
		}
	}
	root := tree(t, old)
	c := connect(t, filesystem.Options{Root: root})
	var patch strings.Builder
	head := regexp.MustCompile(`(?m)^@@ -(\d+),(\d+) .*\n`)
	for name := range old {
		args, err := json.Marshal(map[string]any{"path": name, "dryRun": true, "edits": []any{map[string]string{"oldText": old[name], "newText": want[name]}}})
		if err != nil {
			t.Fatal(err)
		}
		text := c.Call(t, "edit_file", string(args)).Text
		patch.WriteString(text)
		bodies := head.Split(text, -1)[1:]
		for i, m := range head.FindAllStringSubmatch(text, -1) {
			first, _ := strconv.Atoi(m[1])
			count, _ := strconv.Atoi(m[2])
			lines := strings.SplitAfter(strings.TrimSuffix(bodies[i], "\n"), "\n")
			changed := func(l string) bool { return l[0] != ' ' }
			before := slices.IndexFunc(lines, changed)
			slices.Reverse(lines)
			after := slices.IndexFunc(lines, changed)
			if before < 3 && first > 1 || after < 3 && first+count-1 < strings.Count(old[name], "\n") {
				t.Errorf("lines are missing around a change of %q to %q:\n%s", old[name], want[name], text)
			}
		}
	}
	cmd := exec.Command("git", "apply", "-p0", "-")
	cmd.Dir, cmd.Stdin = root, strings.NewReader(patch.String())
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("git is not there")
	}
	if err != nil {
		t.Fatalf("git: %v: %s", err, out)
	}
	for name := range want {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want[name] {
			t.Errorf("git made %q of %q, want %q (%v)", got, old[name], want[name], err)
		}
	}
}

func TestUndo(t *testing.T) {
	root := tree(t, map[string]string{"f": "zero"})
	story(t, filesystem.Options{Root: root, Backup: true}, []call{
		{"write_file", `{"path":"f","content":"one"}`, "wrote f (3 bytes)\n"},
		{"edit_file", `{"path":"f","edits":[{"oldText":"one","newText":"two"}]}`, "--- f\n+++ f\n@@ -1,1 +1,1 @@\n-one\n\\ No newline at end of file\n+two\n\\ No newline at end of file\n"},
		{"undo_file", `{"path":"f","versions":2}`, "f went back by 2; older versions: 0\n"},
		{"read_text_file", `{"path":"f"}`, "zero"},
		{"redo_file", `{"path":"f"}`, "f went forward by 1; newer versions: 1\n"},
		{"read_text_file", `{"path":"f"}`, "one"},
		{"undo_file", `{"path":"f","versions":9}`, `InvalidArgument: "f" can be undone only once`},
		{"undo_file", `{"path":"f","versions":0}`, "InvalidArgument: versions is 0, want at least 1"},
		{"undo_file", `{"path":"none"}`, `NotFound: "none" does not exist; search_file says where it went`},
		{"move_file", `{"source":"f","destination":"g"}`, "moved f to g\n"},
		{"delete_file", `{"path":"g"}`, "deleted g: entry 1 of the trash\n"},
		{"restore_file", `{"id":1}`, "restored g\n"},
		{"redo_file", `{"path":"g"}`, "g went forward by 1; newer versions: 0\n"},
		{"read_text_file", `{"path":"g"}`, "two"},
	})
}

// TestTools lists the tools of each kind of server, with their effects.
func TestTools(t *testing.T) {
	root := tree(t, map[string]string{"f": ""})
	reads := []string{"directory_tree r", "list_directory r", "list_trash r", "read_text_file r", "search_file r"}
	writes := []string{"create_directory i", "create_file ", "delete_file d", "edit_file d", "move_file d", "restore_file ", "write_file di"}
	for name, tt := range map[string]struct {
		o    filesystem.Options
		want []string
	}{
		"read only": {filesystem.Options{Root: root, ReadOnly: true, Backup: true}, reads},
		"default":   {filesystem.Options{Root: root}, slices.Concat(reads, writes)},
		"backup":    {filesystem.Options{Root: root, Backup: true}, slices.Concat(reads, writes, []string{"undo_file d", "redo_file d"})},
		"reference": {filesystem.Options{Root: root, Reference: true}, []string{
			"create_directory i", "directory_tree r", "edit_file d", "get_file_info r", "list_allowed_directories r", "list_directory r", "list_directory_with_sizes r",
			"move_file d", "read_file r", "read_media_file r", "read_multiple_files r", "read_text_file r", "search_files r", "write_file di",
		}},
	} {
		var got []string
		for _, tool := range connect(t, tt.o).Tools {
			a := tool.Annotations
			effects := ""
			if a.ReadOnlyHint {
				effects = "r"
			} else {
				if *a.DestructiveHint {
					effects += "d"
				}
				if a.IdempotentHint {
					effects += "i"
				}
			}
			got = append(got, tool.Name+" "+effects)
		}
		slices.Sort(got)
		slices.Sort(tt.want)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) != 1 {
		t.Errorf("a server that was not asked to change anything has made %v (%v)", entries, err)
	}
}

// FuzzEdit checks that edits change only the text that they name.
func FuzzEdit(f *testing.F) {
	f.Add("one\ntwo\n", "two", "2", "one", "1")
	f.Add("a\r\nb\r\n", "a\nb", "c\n", "b", "")
	f.Fuzz(func(t *testing.T, text, old1, new1, old2, new2 string) {
		root := tree(t, map[string]string{"f": text})
		c := connect(t, filesystem.Options{Root: root, Backup: true})
		args, err := json.Marshal(map[string]any{"path": "f", "edits": []map[string]string{{"oldText": old1, "newText": new1}, {"oldText": old2, "newText": new2}}})
		if err != nil {
			t.Fatal(err)
		}
		r := c.Call(t, "edit_file", string(args))
		data, err := os.ReadFile(filepath.Join(root, "f"))
		if err != nil {
			t.Fatal(err)
		}
		if r.Error && string(data) != text {
			t.Fatalf("%s: a failed edit has changed the file to %q", r.Text, data)
		}
		if !r.Error && string(data) != text {
			if r := c.Call(t, "undo_file", `{"path":"f"}`); r.Error {
				t.Fatal(r.Text)
			}
			if data, _ := os.ReadFile(filepath.Join(root, "f")); string(data) != text {
				t.Fatalf("undo gives %q, want %q", data, text)
			}
		}
	})
}

// TestMulti names the root in every call.
func TestMulti(t *testing.T) {
	one, two := tree(t, map[string]string{"f": "one"}), tree(t, map[string]string{"f": "two", "sub/g": "g"})
	if err := os.Symlink(one, filepath.Join(two, "link")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{".git", ".filesystem"} {
		if err := os.Mkdir(filepath.Join(two, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(".git", filepath.Join(two, "inner")); err != nil {
		t.Fatal(err)
	}
	in := func(root, rest string) string { return `{"root":` + strconv.Quote(root) + rest + `}` }
	refused := `; use one of ` + two
	story(t, filesystem.Options{Multi: true, AllowRoots: []string{two}}, []call{
		{"read_text_file", in(two, `,"path":"f"`), "two"},
		{"read_text_file", in(two+"/sub", `,"path":"g"`), "g"},
		{"write_file", in(two, `,"path":"f","content":"x"`), "wrote f (1 bytes)\n"},
		{"read_text_file", in(one, `,"path":"f"`), `PathEscape: the root "` + one + `" is not allowed or cannot be opened` + refused},
		{"read_text_file", in(two+"/link", `,"path":"f"`), `PathEscape: the root "` + two + `/link" is not allowed or cannot be opened` + refused},
		{"read_text_file", in(two+"x", `,"path":"f"`), `PathEscape: the root "` + two + `x" is not allowed or cannot be opened` + refused},
		{"write_file", in(two+"/.git", `,"path":"config","content":"x"`), `InvalidArgument: ".git" is git's own: what is written there can make git run programs; save it elsewhere`},
		{"write_file", in(two+"/inner", `,"path":"config","content":"x"`), `InvalidArgument: ".git" is git's own: what is written there can make git run programs; save it elsewhere`},
		{"write_file", in(two+"/.filesystem", `,"path":".pending","content":"x"`), `InvalidArgument: ".filesystem" is in a directory that is not for callers; save it elsewhere`},
		{"read_text_file", in("sub", `,"path":"g"`), `InvalidArgument: the root "sub" is relative; give an absolute path`},
		{"read_text_file", `{"path":"f"}`, `InvalidArgument: argument "root" is missing`},
		{"read_text_file", in(two, ""), `InvalidArgument: argument "path" is missing`},
		{"read_text_file", in(two, `,"path":"f","root":"/"`), `InvalidArgument: argument "root" is given twice`},
	})
	story(t, filesystem.Options{Multi: true}, []call{
		{"read_text_file", in(one, `,"path":"f"`), "one"},
		{"read_text_file", in(two, `,"path":"f"`), "x"},
	})
	for _, o := range []filesystem.Options{{Multi: true, Root: one}, {AllowRoots: []string{one}}, {Multi: true, AllowRoots: []string{one + "/none"}}, {KeepBytes: -1}, {Multi: true, ReadOnly: true, Remote: true}} {
		if _, err := filesystem.New(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

// TestReferenceLineEnds edits a file with both kinds of line ends.
func TestReferenceLineEnds(t *testing.T) {
	root := tree(t, map[string]string{"f": "one\r\ntwo\nthree\n"})
	story(t, filesystem.Options{Root: root, Reference: true}, []call{
		{"edit_file", `{"path":"f","edits":[{"oldText":"two","newText":"2"}],"dryRun":false}`, "```diff\n--- " + root + "/f\n+++ " + root + "/f\n@@ -1,3 +1,3 @@\n one\r\n-two\n+2\n three\n```\n\n"},
		{"read_text_file", `{"path":"f"}`, "one\r\n2\nthree\n"},
	})
}
