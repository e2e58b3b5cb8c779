package workspace_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/workspace"
)

// gitStatus runs git status in every directory of root with an entry that a repository has, and returns those in which git finds a repository.
func gitStatus(t *testing.T, root string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		entries, err := os.ReadDir(path)
		if err != nil || !slices.ContainsFunc(entries, func(e os.DirEntry) bool {
			return strings.EqualFold(e.Name(), "HEAD") || strings.EqualFold(e.Name(), ".git")
		}) {
			return err // git looks for nothing else
		}
		cmd := exec.Command("git", "-C", path, "-c", "safe.bareRepository=all", "-c", "safe.directory=*", "status")
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(root), "LC_ALL=C")
		said, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(said), "not a git repository") {
			rel, _ := filepath.Rel(root, path)
			found = append(found, rel+": "+string(said))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// contents are what makes each file of a repository do the most.
func contents(root, name string) string {
	switch strings.ToLower(name) {
	case "head":
		return "ref: refs/heads/main\n"
	case "commondir":
		return "../c\n"
	case "config":
		return "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = " + root + "\n\tfsmonitor = touch " + marker(root) + " && false\n"
	}
	return "gitdir: ../b\n"
}

func marker(root string) string { return filepath.Join(filepath.Dir(root), "ran") }

func needGit(t testing.TB) {
	if _, err := exec.LookPath("git"); err != nil {
		parttest.Missing(t, "git is not installed")
	}
}

// TestGitRuns makes by hand what tee must not make, and sees that git runs what the configuration names: else the tests
// below would see nothing.
func TestGitRuns(t *testing.T) {
	needGit(t)
	for name, files := range map[string][]string{
		"bare":      {"d/HEAD", "d/config", "d/objects/x", "d/refs/x"},
		"commondir": {"b/HEAD", "b/commondir", "c/config", "c/objects/x", "c/refs/x"},
		"gitfile":   {"a/.git", "b/HEAD", "b/config", "b/objects/x", "b/refs/x"},
	} {
		t.Run(name, func(t *testing.T) {
			_, base := openRoot(t)
			root := filepath.Join(base, "root")
			for _, f := range files {
				path := filepath.Join(root, f)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(strings.ReplaceAll(contents(root, filepath.Base(f)), " && false", "")), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if len(gitStatus(t, root)) == 0 {
				t.Error("git finds no repository")
			}
			if _, err := os.Stat(marker(root)); err != nil && name != "commondir" { // there, only other commands run something
				t.Errorf("git status ran nothing: %v", err)
			}
		})
	}
}

// TestSaveNearGit saves the files of a list in each order, and sees which of them the workspace refuses.
func TestSaveNearGit(t *testing.T) {
	for _, tt := range []struct {
		there string   // what somebody else has made
		saves []string // the last one is refused, and no other
	}{
		{"", []string{"d/config", "d/objects/x", "d/refs/x", "d/HEAD"}},
		{"", []string{"d/HEAD", "d/config", "d/refs/x", "d/objects/x"}},
		{"", []string{"d/HEAD", "d/objects/pack/x", "d/refs/heads/x"}},
		{"", []string{"HEAD", "objects/x", "refs/x"}},
		{"", []string{"a/b/objects", "a/b/refs", "a/b/HEAD"}},
		{"", []string{"d/head", "d/Objects/x", "d/REFS/x"}},
		{"", []string{"d/HEAD", "d/objects/x", "d/refs./x"}},
		{"", []string{"d/HEAD", "d/commondir"}},
		{"", []string{"d/CommonDir", "d/HEAD"}},
		{"d/objects/x d/refs/x", []string{"d/config", "d/HEAD"}},
		{"d/HEAD d/objects/x d/refs/x", []string{"d/config"}},
		{"d/HEAD d/objects/x d/refs/x", []string{"d/hooks/post-checkout"}},
		{"d/HEAD d/commondir", []string{"d/logs/x"}},
		{".mcsh/audit/d/HEAD", []string{"d/objects/x", "d/refs/x"}},
		{"", []string{".git"}},
		{"", []string{"a/.GIT/config"}},
		{"", []string{"a/git~1/config"}},
		{"", []string{".git./config"}},
		{"", []string{".git /config"}},
		{"", []string{".git::$INDEX_ALLOCATION/config"}},
		{"", []string{".g\u200cit/config"}},
		{"", []string{".mcsh./tmp"}},
	} {
		t.Run(strings.Join(append([]string{tt.there}, tt.saves...), " "), func(t *testing.T) {
			d, root := openRoot(t)
			for name := range strings.FieldsSeq(tt.there) {
				if err := errors.Join(os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(root, name), nil, 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			for i, name := range tt.saves {
				for _, behind := range []bool{false, true} {
					_, err := save(t, d, name, "ref: refs/heads/main\n", workspace.SaveOptions{Append: behind})
					if last := i == len(tt.saves)-1; last != (err != nil) || last && workspace.KindOf(err) != workspace.InvalidArgument {
						t.Errorf("saving %q: %v", name, err)
					}
				}
			}
		})
	}
}

// TestSaveCrowded: a directory with too many entries to search is no place for what a repository has.
func TestSaveCrowded(t *testing.T) {
	root := memoryDir(t)
	d := open(t, root)
	for i := range 10_001 {
		if err := os.WriteFile(filepath.Join(root, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := save(t, d, "HEAD", "x", workspace.SaveOptions{}); err == nil || !strings.Contains(err.Error(), "more than 10000 entries") {
		t.Errorf("got %v", err)
	}
	if _, err := save(t, d, "note.txt", "x", workspace.SaveOptions{}); err != nil {
		t.Error(err)
	}
}

// gitNames are the parts of names that FuzzSaveGit makes files of.
var gitNames = []string{
	"HEAD", "objects", "refs", "config", "commondir", "gitdir", "a", "b", "c", "head", "Refs", "OBJECTS", ".git", ".GIT", "git~1", "HEAD ",
	"worktrees", "modules", "hooks", "config.worktree",
}

// memoryDir is a new directory in memory where the machine has one: a save waits for its disk several times.
func memoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "mcsh-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// FuzzSaveGit saves files under names of two bytes each, the first of which says whether a file is saved, written behind,
// or removed by somebody else. Whatever was saved, git finds no repository.
func FuzzSaveGit(f *testing.F) {
	needGit(f)
	name := func(parts ...string) (b []byte) {
		b = append(b, byte(3*len(parts)))
		for _, p := range parts {
			b = append(b, byte(slices.Index(gitNames, p)))
		}
		return b
	}
	bare := [][]byte{name("a", "HEAD"), name("a", "config"), name("a", "objects", "a"), name("a", "refs", "a")}
	for i := range bare {
		f.Add(slices.Concat(slices.Concat(bare[i:]...), slices.Concat(bare[:i]...)))
	}
	f.Add(slices.Concat(name("b", "HEAD"), name("b", "commondir"), name("c", "config"), name("c", "objects", "a"), name("c", "refs", "a")))
	f.Add(slices.Concat(name("c", "objects", "a"), name("c", "refs", "a"), name("b", "commondir"), name("b", "HEAD")))
	f.Add(slices.Concat(name("a", ".git"), name("b", "HEAD"), name("b", "config"), name("b", "objects", "a"), name("b", "refs", "a")))
	f.Add(slices.Concat(bare[0], []byte{8, 6, 0}, bare[2], bare[3], bare[1])) // HEAD is removed, and its mirror stays
	f.Fuzz(func(t *testing.T, ops []byte) {
		root := filepath.Join(memoryDir(t), "root")
		if err := os.Mkdir(root, 0o755); err != nil {
			t.Fatal(err)
		}
		d := open(t, root)
		for n := 0; len(ops) > 0 && n < 12; n++ {
			how := ops[0]
			parts := min(int(how/3)%4, len(ops)-1)
			var at []string
			for _, b := range ops[1 : 1+parts] {
				at = append(at, gitNames[int(b)%len(gitNames)])
			}
			ops = ops[1+parts:]
			path := strings.Join(at, "/")
			if how%3 == 2 && path != "" {
				os.Remove(filepath.Join(root, path))
				continue
			}
			text := ""
			if parts > 0 {
				text = contents(root, at[parts-1])
			}
			if saved, err := d.Save(t.Context(), path, strings.NewReader(text), workspace.SaveOptions{Append: how%3 == 1}); err == nil {
				saved.Close()
			}
		}
		for _, found := range gitStatus(t, root) {
			t.Errorf("git finds a repository in %s", found)
		}
		if _, err := os.Stat(marker(root)); err == nil {
			t.Error("ran")
		}
	})
}
