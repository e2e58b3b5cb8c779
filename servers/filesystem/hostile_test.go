package filesystem_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/costtest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/servers/filesystem"
)

// TestNested has thousands of directories in each other: every tool ends, and says what it leaves out.
func TestNested(t *testing.T) {
	levels := parttest.Times(3000, 10_000)
	root := tree(t, map[string]string{"a/f.txt": "x"})
	costtest.Nested(t, filepath.Join(root, "a"), levels)
	c := connect(t, filesystem.Options{Root: root})
	if r := c.Call(t, "directory_tree", `{"path":"."}`); r.Error || !strings.Contains(r.Text, `"unread":"max_depth"`) {
		t.Errorf("the tree: %.200s", r.Text)
	}
	deepest := "a" + strings.Repeat("/d", levels)
	story(t, filesystem.Options{Root: root, Backup: true}, []call{
		{"list_directory", `{"path":"a"}`, "[DIR] d\n[FILE] f.txt\n"},
		{"read_text_file", `{"path":"` + deepest + `/f.txt"}`, fmt.Sprintf("InvalidArgument: the path has %d bytes, at most 4096 are possible", len(deepest+"/f.txt"))},
		{"write_file", `{"path":"a` + strings.Repeat("/d", 1000) + `/f","content":""}`, `InvalidArgument: "a` + strings.Repeat("/d", 49) + `/...` + strings.Repeat("/d", 49) + `/f" is more than 200 levels deep; save it higher up`},
		{"move_file", `{"source":"a","destination":"b/c"}`, "moved a to b/c\n"},
		{"delete_file", `{"path":"b"}`, "deleted b: entry 1 of the trash\n"},
		{"restore_file", `{"id":1}`, "restored b\n"},
		{"search_file", `{"path":"a"}`, "T moved to b/c\nT deleted: entry 1 of the trash\nT restored at b/c\n"},
	})
	reference := connect(t, filesystem.Options{Root: root, Reference: true})
	for _, tool := range []string{"directory_tree", "search_files"} {
		args := `{"path":".","pattern":"**/f.txt"}`
		if tool == "directory_tree" {
			args = `{"path":"."}`
		}
		if r := reference.Call(t, tool, args); r.Error || !strings.Contains(r.Text, "f.txt") {
			t.Errorf("%s: %.200s", tool, r.Text)
		}
	}
}

// TestGrowing reads a file that others write to meanwhile: a beginning of it comes, or an error that says that it is too long.
func TestGrowing(t *testing.T) {
	root := tree(t, map[string]string{"log": ""})
	f, err := os.OpenFile(filepath.Join(root, "log"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stop, stopped := make(chan struct{}), make(chan error)
	long := strings.Repeat("x", 1<<10)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if _, err := fmt.Fprintf(f, "line %d %s\n", i, long); err != nil {
				stopped <- err
				return
			}
			if i%1500 == 1499 { // it becomes shorter, too
				if err := f.Truncate(0); err != nil {
					stopped <- err
					return
				}
			}
		}
	}()
	c := connect(t, filesystem.Options{Root: root, MaxBytes: 1 << 20})
	for i, refused := 0, false; i < parttest.Times(15, 60) || !refused; i++ {
		args := []string{`{"path":"log"}`, `{"path":"log","tail":3}`, `{"path":"log","head":3}`}[i%3]
		r := c.Call(t, "read_text_file", args)
		if r.Error && !strings.Contains(r.Text, "at most 1048576 bytes are read at once") && !strings.Contains(r.Text, "became shorter") && !strings.Contains(r.Text, "is a binary file") {
			t.Fatalf("%s: %.200s", args, r.Text)
		}
		refused = refused || r.Error
		if !r.Error && len(r.Text) > 1<<20 {
			t.Fatalf("%s: %d bytes", args, len(r.Text))
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
}

// TestSpecialFiles calls every tool with what is no file: nothing waits, and nothing changes.
func TestSpecialFiles(t *testing.T) {
	root := tree(t, map[string]string{"f": "x"})
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(root, "zero")); err != nil {
		t.Fatal(err)
	}
	edits := `,"edits":[{"oldText":"x","newText":"y"}]}`
	outside := `leads out of the root through a symbolic link; only links that are relative and stay inside the root are followed`
	long := strings.Repeat("n", 300)
	short := long[:100] + "..." + long[:100]
	story(t, filesystem.Options{Root: root, Backup: true}, []call{
		{"read_text_file", `{"path":"pipe"}`, `InvalidArgument: "pipe" is a named pipe; only regular files can be read`},
		{"write_file", `{"path":"pipe","content":"x"}`, `InvalidArgument: "pipe" is a named pipe; only regular files can be replaced`},
		{"edit_file", `{"path":"pipe"` + edits, `InvalidArgument: "pipe" is a named pipe; only regular files can be replaced`},
		{"undo_file", `{"path":"pipe"}`, `InvalidArgument: "pipe" is a named pipe; only regular files can be replaced`},
		{"read_text_file", `{"path":"zero"}`, `PathEscape: "zero" ` + outside},
		{"write_file", `{"path":"zero","content":"x"}`, `PathEscape: "zero" ` + outside},
		{"edit_file", `{"path":"zero"` + edits, `PathEscape: "zero" ` + outside},
		{"read_text_file", `{"path":"a\u0000b"}`, `InvalidArgument: the path "a\x00b" contains a NUL byte`},
		{"write_file", `{"path":"a\u0000b","content":""}`, `InvalidArgument: the path "a\x00b" contains a NUL byte`},
		{"move_file", `{"source":"f","destination":"` + long + `/g"}`, `InvalidArgument: "` + short[:201] + `/g" has a name that is too long`},
		{"create_directory", `{"path":"new/` + long + `"}`, `InvalidArgument: "new/` + long[:96] + "..." + long[:100] + `" has a name that is too long`},
		{"read_text_file", `{"path":"` + long + `"}`, `InvalidArgument: "` + short + `" has a name that is too long`},
		{"move_file", `{"source":"pipe","destination":"moved"}`, "moved pipe to moved\n"}, // as it is
		{"delete_file", `{"path":"zero"}`, "deleted zero: entry 1 of the trash\n"},
		{"list_directory", `{"path":"."}`, "[FILE] f\n[OTHER] moved\n"},
	})
}
