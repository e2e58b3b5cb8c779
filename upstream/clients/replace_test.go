package clients

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReplace: of a server whose place the gateway takes nothing stays in the entry, the file as it was is kept, and it
// comes back whole, unless the file has changed since.
func TestReplace(t *testing.T) {
	for _, test := range []struct{ client, path, old string }{
		{"cursor", "mcp.json", "{\n  \"mcpServers\": {\n    // theirs\n    \"mcsh\": {\"command\": \"npx\", \"args\": [\"x\"], \"env\": {\"TOKEN\": \"t\"}, \"disabled\": true},\n    \"b\": {\"command\": \"y\"},\n  },\n}\n"},
		{"cursor", "mcp.json", `{"mcpServers":{"mcsh":{"url":"https://other/mcp","headers":{"TOKEN":"t"},"disabled":true}}}`},
		{"cursor", "mcp.json", `{"mcpServers":{"mcsh":"TOKEN, disabled"}}`},
		{"codex", "config.toml", "a = 1\n\n[mcp_servers.mcsh]\ncommand = \"npx\"\nenv = {TOKEN = \"t\"}\nenabled = false # disabled\n\n[mcp_servers.mcsh.tools]\nx = 1\n\n[b]\nc = 1\n"},
	} {
		c, old := client(t, test.client), []byte(test.old)
		for _, g := range []Gateway{started, reached} {
			edit, err := c.Add(test.path, old, g, true)
			if err != nil || edit.Outcome != Replaced || !edit.NeedsBackup {
				t.Fatalf("%s: %s, %v, %v", old, edit.Outcome, edit.NeedsBackup, err)
			}
			for _, theirs := range []string{"TOKEN", "disabled", "npx", "https://other"} {
				if bytes.Contains(edit.Data, []byte(theirs)) {
					t.Errorf("%s is still in\n%s", theirs, edit.Data)
				}
			}
			earlier := []byte("{}\n")
			if out, err := c.Remove(test.path, edit.Data, pastOf(old, earlier), g); err != nil || out.Outcome != Restored || !bytes.Equal(out.Data, old) {
				t.Errorf("%s, %v: got\n%s\nwant\n%s", out.Outcome, err, out.Data, old)
			}
			later := bytes.Replace(edit.Data, []byte("y\""), []byte("z\""), 1)
			later = bytes.Replace(later, []byte("a = 1"), []byte("a = 2"), 1)
			if bytes.Equal(later, edit.Data) {
				continue
			}
			if out, err := c.Remove(test.path, later, pastOf(old), g); err != nil || out.Outcome != Removed || has(c, test.path, out.Data) {
				t.Errorf("%s, %v:\n%s", out.Outcome, err, out.Data)
			}
		}
	}
}

// TestKeep: no backup takes the place of another, and of a file that was made only that is kept.
func TestKeep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "[f].json")
	keep := func(old string, edit Edit) string {
		t.Helper()
		if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
		backup, err := SaveOriginal(path, []byte(old), edit)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimPrefix(backup, path)
	}
	if backup, err := SaveOriginal(path, nil, Edit{Outcome: Added, NeedsBackup: true}); err != nil || backup != "" {
		t.Fatalf("of no file: %q, %v", backup, err)
	}
	if original, err := OriginalOf(path); err != nil || !original.Made || len(original.Backups) > 0 {
		t.Errorf("of no file: %+v, %v", original, err)
	}
	for _, step := range []struct {
		old  string
		edit Edit
		want string
	}{
		{"made", Edit{Outcome: Replaced}, ""},
		{"theirs", Edit{Outcome: Added, NeedsBackup: true}, ".before-mcsh"},
		{"ours", Edit{Outcome: Replaced}, ""},
		{"another", Edit{Outcome: Replaced, NeedsBackup: true}, ".before-mcsh-2"},
		{"theirs", Edit{Outcome: Added, NeedsBackup: true}, ".before-mcsh"},
		{"third", Edit{Outcome: Replaced, NeedsBackup: true}, ".before-mcsh-3"},
	} {
		if got := keep(step.old, step.edit); got != step.want {
			t.Errorf("of %q: %q, want %q", step.old, got, step.want)
		}
	}
	for _, name := range []string{".before-mcsh-02", ".before-mcsh-x", ".before-mcsh-1", ".before-mcsh2"} {
		if err := os.WriteFile(path+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	original, err := OriginalOf(path)
	var held []string
	for _, backup := range original.Backups {
		held = append(held, string(backup.Data))
	}
	if got := strings.Join(held, " "); err != nil || original.Made || got != "third another theirs" {
		t.Errorf("%v: got %s, made %v", err, got, original.Made)
	}
	RemoveBackups(path, []byte("another"))
	if original, err = OriginalOf(path); err != nil || len(original.Backups) != 2 {
		t.Errorf("%v: %+v", err, original.Backups)
	}
}

// TestRewriteChanged: what another program writes between reading and writing is not lost.
func TestRewriteChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, test := range []struct {
		old, ours []byte
		theirs    string
	}{{nil, []byte("ours"), "theirs"}, {[]byte("old"), []byte("ours"), "theirs"}, {[]byte("old"), nil, "theirs"}, {[]byte("old"), []byte("ours"), ""}} {
		if err := os.WriteFile(path, test.old, 0o600); err != nil {
			t.Fatal(err)
		}
		if test.old == nil {
			_ = os.Remove(path)
		}
		err := Rewrite(t.Context(), path, func([]byte) ([]byte, error) {
			if test.theirs == "" {
				return test.ours, os.Remove(path)
			}
			return test.ours, os.WriteFile(path, []byte(test.theirs), 0o600)
		})
		if got, _ := os.ReadFile(path); !errors.Is(err, ErrChanged) || string(got) != test.theirs {
			t.Errorf("%q to %q: %v, the file holds %q, want %q", test.old, test.ours, err, got, test.theirs)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) > 0 {
		t.Errorf("%v are left, %v", entries, err)
	}
}

// TestRewriteOwner: with sudo a file stays its user's, and so are those that are made beside it.
func TestRewriteOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root writes files of others")
	}
	dir := t.TempDir()
	old, made := filepath.Join(dir, "f"), filepath.Join(dir, "a", "b", "g")
	if err := errors.Join(os.WriteFile(old, []byte("old"), 0o644), os.Chmod(old, 0o644), os.Chown(old, 4711, 4712), os.Chown(dir, 4711, 4712)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{old, made} {
		err := Rewrite(t.Context(), path, func(data []byte) ([]byte, error) {
			_, err := SaveOriginal(path, data, Edit{Outcome: Added, NeedsBackup: true})
			return []byte("new"), err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, mode := range map[string]os.FileMode{
		old: 0o644, old + ".before-mcsh": 0o600, made: 0o600, made + ".made-by-mcsh": 0o600,
		filepath.Dir(made): 0o700 | os.ModeDir, filepath.Join(dir, "a"): 0o700 | os.ModeDir,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if s := info.Sys().(*syscall.Stat_t); s.Uid != 4711 || s.Gid != 4712 || info.Mode() != mode {
			t.Errorf("%s belongs to %d:%d with %v, want 4711:4712 with %v", path, s.Uid, s.Gid, info.Mode(), mode)
		}
	}
}
