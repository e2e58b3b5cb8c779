package workspace_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/workspace"
)

// ignoreCases are patterns, paths that they ignore and paths that they do not. A path with a "/" at its end is a
// directory. Every case is also put to git, if git is there.
var ignoreCases = []struct{ name, patterns, ignored, kept string }{
	{"name at any level", "foo", "foo a/foo a/b/foo/ foo/", "food a/food xfoo"},
	{"leading slash", "/foo", "foo foo/", "a/foo"},
	{"slash in the middle", "a/b", "a/b a/b/", "x/a/b b"},
	{"directories only", "foo/", "foo/ a/foo/", "foo a/foo"},
	{"anchored directories only", "/foo/", "foo/", "foo a/foo/"},
	{"two slashes", "a/b/", "a/b/", "a/b x/a/b/"},
	{"star", "*.log", "a.log x/b.log .log", "a.log.txt log"},
	{"star in the middle", "a*c", "ac abc abbc x/abc", "abcd ab"},
	{"star does not cross", "a/*.c", "a/x.c", "a/b/x.c x/a/x.c"},
	{"question mark", "a?c", "abc x/a-c", "ac abbc"},
	{"question mark and slash", "x/a?c", "x/abc", "x/a/c"},
	{"leading double star", "**/foo", "foo a/foo a/b/foo", "food"},
	{"leading double star, path", "**/a/b", "a/b x/a/b x/y/a/b", "a/x/b"},
	{"trailing double star", "abc/**", "abc/x abc/x/y abc/d/", "abc abc/ x/abc/y"},
	{"double star in the middle", "a/**/b", "a/b a/x/b a/x/y/b", "ab a/bx x/a/b"},
	{"double star inside a name", "a**b/c", "ab/c axxb/c", "a/b/c a/x/b/c"},
	{"three stars", "a/***/b", "a/b a/x/y/b", "ab"},
	{"only stars", "**", "a a/b/ x/y", ""},
	{"negation", "*.log\n!keep.log", "a.log x/a.log", "keep.log x/keep.log"},
	{"the last match wins", "!a.log\n*.log", "a.log", "b"},
	{"negated twice", "*.log\n!*.log\nb.log", "b.log", "a.log"},
	{"negation below an ignored directory", "dir\n!dir/keep", "dir/ dir/keep dir/x", "keep"},
	{"negation of what a star ignores", "/dir/*\n!/dir/keep", "dir/x dir/y/", "dir/keep dir/"},
	{"everything but", "/*\n!/foo\n/foo/*\n!/foo/bar", "x foo/y bar", "foo/ foo/bar foo/bar/z"},
	{"comment", "#foo\n # bar", "", "#foo foo bar"},
	{"escaped hash", `\#foo`, "#foo", "foo"},
	{"escaped bang", `\!foo`, "!foo", "foo"},
	{"bang alone", "!", "", "! a"},
	{"escaped star", `a\*b`, "a*b", "axb ab"},
	{"escaped letter", `\a\b`, "ab", `\a\b`},
	{"escaped backslash", `a\\b`, `a\b`, "ab"},
	{"backslash at the end", `foo\`, "", `foo foo\`},
	{"blank lines", "\n\nfoo\n\n", "foo", "a"},
	{"trailing spaces", "foo   \nbar\\ \nbaz\t", "foo", "bar baz"},
	{"carriage returns", "foo\r\nbar/\r\n", "foo bar/", "bar"},
	{"byte order mark", "\ufefffoo", "foo", "bar"},
	{"class", "[abc].x", "a.x d/b.x", "d.x .x"},
	{"range", "[a-c]x", "ax bx cx", "dx -x"},
	{"negated class", "[!a-c]x", "dx -x", "ax bx x"},
	{"caret class", "[^a]x", "bx", "ax"},
	{"negated class and slash", "a[!x]b/c", "ayb/c", "axb/c a/b/c"},
	{"bracket first", "[]x]a", "]a xa", "a"},
	{"negated bracket first", "[!]x]a", "ba", "]a xa"},
	{"dash last", "[a-]x", "ax -x", "bx"},
	{"dash first", "[-a]x", "ax -x", "bx"},
	{"two ranges", "[a-c-e]x", "ax cx -x ex", "dx"},
	{"backward range", "[c-a]x", "cx", "ax bx -x"},
	{"escaped in class", `[\]\\]x`, `]x \x`, "ax"},
	{"escaped range", `[\a-\c]x`, "ax bx cx", "dx -x"},
	{"posix class", "[[:digit:]]x", "1x", "ax :x"},
	{"posix classes", "[[:upper:][:punct:]_]x", "Ax _x !x", "ax 1x"},
	{"unknown posix class", "[[:nope:]]x", "", "nx :x"},
	{"unclosed posix class", "[[:x]]y", "[]y d/:]y x]y", "y ay"},
	{"unclosed class", "[abc", "", "a [abc"},
	{"empty class", "[]", "", "[] a"},
	{"unclosed negated class", "a[!", "", "a a["},
	{"bytes, not characters", "a??b\n[é]x", "aéb", "axb éx"},
	{"literal accents", "é*.txt", "é.txt éa.txt x/é.txt", "e.txt"},
	{"case matters", "Foo", "Foo", "foo FOO"},
	{"dots are literal", "a.b", "a.b", "axb"},
	{"plus and parentheses are literal", "a+(b)|{c}$^", "a+(b)|{c}$^", "aab"},
	{"root slash only", "/\n//", "", "a b/"},
	{"spaces inside", "a b", "", "a b"},
}

// ignored asks as a walk does: an entry is ignored if it or one of its parents is.
func ignored(i workspace.Ignore, name string) bool {
	clean, dir := strings.CutSuffix(name, "/")
	for p := clean; p != "."; p = path.Dir(p) {
		if i.Match(p, dir || p != clean) {
			return true
		}
	}
	return false
}

func TestIgnore(t *testing.T) {
	for _, tt := range ignoreCases {
		list, err := workspace.ParseIgnore(tt.patterns)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		for name := range strings.FieldsSeq(tt.ignored) {
			if !ignored(list, name) {
				t.Errorf("%s: %q keeps %q", tt.name, tt.patterns, name)
			}
		}
		for name := range strings.FieldsSeq(tt.kept) {
			if ignored(list, name) {
				t.Errorf("%s: %q ignores %q", tt.name, tt.patterns, name)
			}
		}
	}
}

// TestIgnoreAgainstGit checks the table itself: git has the last word on what a pattern means.
func TestIgnoreAgainstGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		parttest.Missing(t, "git is not installed")
	}
	for _, tt := range ignoreCases {
		repo := t.TempDir()
		if out, err := exec.Command("git", "init", "-q", repo).CombinedOutput(); err != nil {
			t.Fatalf("git init: %v\n%s", err, out)
		}
		write(t, filepath.Join(repo, ".gitignore"), tt.patterns)
		var dirs, files []string
		for name := range strings.FieldsSeq(tt.ignored + " " + tt.kept) {
			if clean, dir := strings.CutSuffix(name, "/"); dir {
				dirs = append(dirs, clean)
			} else {
				files = append(files, name)
			}
		}
		got := map[string]bool{}
		for _, name := range checkIgnore(t, repo, files) { // nothing exists: git takes all names for files
			got[name] = true
		}
		for _, dir := range dirs {
			if err := os.MkdirAll(filepath.Join(repo, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range checkIgnore(t, repo, dirs) {
			got[name+"/"] = true
		}
		for name := range strings.FieldsSeq(tt.ignored) {
			if !got[name] {
				t.Errorf("%s: git keeps %q", tt.name, name)
			}
		}
		for name := range strings.FieldsSeq(tt.kept) {
			if got[name] {
				t.Errorf("%s: git ignores %q", tt.name, name)
			}
		}
	}
}

// checkIgnore returns those of names that git ignores in repo.
func checkIgnore(t *testing.T, repo string, names []string) []string {
	t.Helper()
	cmd := exec.Command("git", "check-ignore", "--no-index", "-z", "--stdin")
	cmd.Dir = repo
	cmd.Stdin = strings.NewReader(strings.Join(names, "\x00"))
	out, err := cmd.Output()
	if code, ok := err.(*exec.ExitError); err != nil && (!ok || code.ExitCode() != 1) {
		t.Fatalf("git check-ignore: %v", err)
	}
	return strings.Split(string(out), "\x00")
}

func FuzzIgnore(f *testing.F) {
	for _, tt := range ignoreCases {
		f.Add(tt.patterns, "a/b")
	}
	f.Fuzz(func(t *testing.T, patterns, name string) {
		list, err := workspace.ParseIgnore(patterns)
		if err != nil {
			return
		}
		list.Match(name, true)
		if p := list.Match(name, false); p && !strings.ContainsAny(patterns, "*?[") && !strings.Contains(patterns, "\\") {
			for part := range strings.SplitSeq(name, "/") {
				if strings.Contains(patterns, part) {
					return
				}
			}
			t.Errorf("%q ignores %q", patterns, name)
		}
	})
}
