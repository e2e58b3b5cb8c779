package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcsh-dev/mcsh/workspace"
)

// TestAppendInPlace: what is written behind a file does not copy it, unless it has another name, too.
func TestAppendInPlace(t *testing.T) {
	d, root := openRoot(t)
	outside := filepath.Join(t.TempDir(), "outside")
	for _, err := range []error{
		os.WriteFile(filepath.Join(root, "log"), []byte("one\n"), 0o640),
		os.WriteFile(filepath.Join(root, "open"), []byte("one"), 0o640),
		os.WriteFile(outside, []byte("one"), 0o640),
		os.Link(outside, filepath.Join(root, "linked")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, inPlace := range map[string]bool{"log": true, "open": true, "linked": false} {
		path := filepath.Join(root, name)
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := save(t, d, name, "two\n", workspace.SaveOptions{Append: true}); err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(path)
		if err != nil || os.SameFile(before, after) != inPlace {
			t.Errorf("%s: the same file %v, want %v, %v", name, !inPlace, inPlace, err)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != "one\ntwo\n" {
			t.Errorf("%s holds %q, %v", name, text, err)
		}
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "one" {
		t.Errorf("the file outside holds %q, %v", text, err)
	}
}
