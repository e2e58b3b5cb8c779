package workspace_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/workspace"
)

// TestSavedVersions: what is saved can be undone and redone, and so can what somebody else has written between.
func TestSavedVersions(t *testing.T) {
	d, root := openRoot(t)
	h := workspace.NewHistory(d, workspace.HistoryOptions{Versions: true})
	keeping := func(o workspace.SaveOptions) workspace.SaveOptions {
		o.History = h
		return o
	}
	file := filepath.Join(root, "r.txt")
	for _, s := range []struct {
		text string
		how  workspace.SaveOptions
	}{{"one", replaces}, {"two", appends}, {"three", joins}, {"four", replaces}} {
		if _, err := save(t, d, "r.txt", s.text, keeping(s.how)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, []byte("by hand"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := save(t, d, "r.txt", "five", keeping(replaces)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"by hand", "four", "one\ntwothree", "one\ntwo", "one"} {
		if _, _, err := h.Undo(t.Context(), "r.txt", 1); err != nil {
			t.Fatalf("undoing to %q: %v", want, err)
		}
		if got := files(t, root)["r.txt"]; got != want {
			t.Errorf("the file holds %q after an undo, want %q", got, want)
		}
	}
	if _, _, err := h.Redo(t.Context(), "r.txt", 5); err != nil {
		t.Fatal(err)
	}
	if got := files(t, root)["r.txt"]; got != "five" {
		t.Errorf("the file holds %q after the redo, want %q", got, "five")
	}
}

// TestSavedAgain: a save that changes nothing is no version, and what was undone can still be redone after it.
func TestSavedAgain(t *testing.T) {
	d, root := openRoot(t)
	h := workspace.NewHistory(d, workspace.HistoryOptions{Versions: true})
	keeping := func(text string, o workspace.SaveOptions) {
		t.Helper()
		o.History = h
		if _, err := save(t, d, "r.txt", text, o); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"one", "two", "two", "two"} {
		keeping(text, replaces)
	}
	keeping("", joins)
	if _, _, err := h.Undo(t.Context(), "r.txt", 1); err != nil {
		t.Fatal(err)
	}
	if got := files(t, root)["r.txt"]; got != "one" {
		t.Errorf("one undo leads to %q, want %q", got, "one")
	}
	keeping("one", replaces)
	if _, _, err := h.Redo(t.Context(), "r.txt", 1); err != nil {
		t.Fatal(err)
	}
	if got := files(t, root)["r.txt"]; got != "two" {
		t.Errorf("a redo leads to %q, want %q", got, "two")
	}
}

// TestSaveAfterKilled saves after a process was killed before each step of a move, at both places of that: nothing is lost.
func TestSaveAfterKilled(t *testing.T) {
	for _, place := range []string{"dir/f", "other/f"} {
		for n := 1; ; n++ {
			d, root := openRoot(t)
			h := workspace.NewHistory(d, versions)
			if err := put(t.Context(), h, "dir/f", "two"); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d move", child, root, n))
			ended := cmd.Run() == nil
			if _, err := save(t, d, place, "precious", workspace.SaveOptions{History: h}); err != nil {
				t.Fatalf("%s, step %d: %v", place, n, err)
			}
			if got := files(t, root); got[place] != "precious" {
				t.Errorf("%s, step %d: there is %v", place, n, got)
			}
			if _, _, err := h.Undo(t.Context(), place, 1); err != nil && place == "other/f" && ended {
				t.Errorf("%s, step %d: the moved version is lost: %v", place, n, err)
			}
			if got := files(t, root); got["dir/f"] != "two" && got["other/f"] != "two" {
				t.Errorf("%s, step %d: the old text is lost: %v", place, n, got)
			}
			if ended {
				break
			}
		}
	}
}

// TestSavedRecord: a save names the mirror and the line in it, and counts the version in what it writes.
func TestSavedRecord(t *testing.T) {
	d, root := openRoot(t)
	h := workspace.NewHistory(d, workspace.HistoryOptions{Versions: true})
	var adds int64
	saved, err := d.Save(t.Context(), "a/r.txt", strings.NewReader("text"), workspace.SaveOptions{History: h, Charge: func(n, _ int64) error {
		adds += n
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	line := fmt.Sprintf("record_id=%d ---\ntext", saved.Record)
	if got := files(t, root)[saved.Mirror]; saved.Mirror != ".mcsh/audit/a/r.txt" || !strings.HasSuffix(got, line) {
		t.Errorf("the mirror %s holds %q, want the line of record %d", saved.Mirror, got, saved.Record)
	}
	if saved.Path != "a/r.txt" || saved.Bytes != 4 || adds < 3*4 {
		t.Errorf("saved %s, %d bytes, and %d were charged", saved.Path, saved.Bytes, adds)
	}
}

// TestSavedVersionsCharged: what somebody else has written becomes a version, which counts; a version that is known already does not.
func TestSavedVersionsCharged(t *testing.T) {
	d, root := openRoot(t)
	h := workspace.NewHistory(d, workspace.HistoryOptions{Versions: true})
	file := filepath.Join(root, "f")
	const size = 10_000 // the lines of the mirror are much shorter
	for _, tt := range []struct {
		byHand bool
		how    workspace.SaveOptions
		want   int64 // the file, the mirror and the versions, in files of this size
	}{
		{false, replaces, 3}, {false, replaces, 2}, {true, replaces, 4}, {false, joins, 4}, {true, joins, 5},
	} {
		if tt.byHand {
			if err := os.WriteFile(file, []byte(strings.Repeat("h", size)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var adds int64
		tt.how.History = h
		tt.how.Charge = func(n, _ int64) error { adds += n; return nil }
		if _, err := save(t, d, "f", strings.Repeat("x", size), tt.how); err != nil {
			t.Fatal(err)
		}
		if got := adds / size; got != tt.want {
			t.Errorf("%+v: %d bytes were charged, want %d files", tt, adds, tt.want)
		}
		if !tt.how.Append {
			continue
		}
		if _, err := save(t, d, "f", strings.Repeat("x", size), workspace.SaveOptions{History: h}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDirectory(t *testing.T) {
	d, root := openRoot(t)
	for _, err := range []error{
		os.MkdirAll(filepath.Join(root, "a/b"), 0o755), os.MkdirAll(filepath.Join(root, ".mcsh/audit"), 0o755),
		os.Symlink("a/b", filepath.Join(root, "in")), os.Symlink("..", filepath.Join(root, "out")),
		os.Symlink(".mcsh", filepath.Join(root, "own")), os.Symlink(root, filepath.Join(root, "absolute")),
		os.WriteFile(filepath.Join(root, "file"), nil, 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name, want string
		kind       workspace.Kind
	}{
		{".", ".", ""},
		{"a/../a/b/", "a/b", ""},
		{"in", "a/b", ""},
		{root + "/a", "a", ""},
		{"..", "", workspace.PathEscape},
		{"out", "", workspace.PathEscape},
		{"out/..", ".", ""},
		{"absolute", "", workspace.PathEscape},
		{"/", "", workspace.PathEscape},
		{".mcsh", "", workspace.InvalidArgument},
		{"own/audit", "", workspace.InvalidArgument},
		{".filesystem", "", workspace.InvalidArgument},
		{"file", "", workspace.InvalidArgument},
		{"none", "", workspace.NotFound},
		{"file/x", "", workspace.NotFound},
		{"", "", workspace.InvalidArgument},
	} {
		got, err := d.Directory(tt.name)
		if got != tt.want || (err == nil) != (tt.kind == "") || err != nil && workspace.KindOf(err) != tt.kind {
			t.Errorf("%q: got %q, %v, want %q, %s", tt.name, got, err, tt.want, tt.kind)
		}
	}
}
