//go:build unix

package doccheck

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// volatile is what differs from run to run or from machine to machine, with what stands for it.
var volatile = []struct {
	found *regexp.Regexp
	to    string
}{
	{regexp.MustCompile(`\b\d[\d.,]* ?(ms|µs)\b|\b\d+\.\d+ ?s\b`), "..."},
	{regexp.MustCompile(`(?m) +(busy )?ms$`), "...ms"},                                             // a column of numbers, and its heading
	{regexp.MustCompile(`(?m)^(\d+(?:\.\d+)* .*?) +\d+\.\d$`), "$1..."},                            // its rows
	{regexp.MustCompile(`(?m)^mcsh \S+ \(go.*\)$`), "mcsh ... (go..., ...)"},                       // the version
	{regexp.MustCompile(`(?m)^(\.\.\. Sandbox:|Sandbox:) .*$`), "$1 ..."},                          // the backend
	{regexp.MustCompile(`(?m)^commands ran in .*\n(?:note: .*\n)*`), "commands ran in ...\n...\n"}, // and why it is not another one
}

// mask replaces what is volatile, and the directories of the test.
func mask(out, dir, bin string) string {
	out = strings.NewReplacer(bin, "...", dir, "...").Replace(out)
	for _, v := range volatile {
		out = v.found.ReplaceAllString(out, v.to)
	}
	return out
}

// renew writes what the commands print into a document.
func renew(t *testing.T, path string, commands []command, dir, bin string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	printed := map[int]string{}
	for _, c := range commands {
		out, exit, err := execute(t.Context(), c.text, dir, bin)
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		out = mask(out, dir, bin)
		if exit != 0 {
			out += fmt.Sprintf("(exit %d)\n", exit)
		}
		printed[c.line] = out
	}
	if err := os.WriteFile(path, []byte(rewrite(string(text), printed)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// rewrite puts what was printed behind the commands of a document, by the lines that the commands begin at.
func rewrite(document string, printed map[int]string) string {
	var b strings.Builder
	inside, waiting := false, ""
	n := 0
	for line := range strings.Lines(document) {
		n++
		mark, word := fenceOf(strings.TrimSuffix(line, "\n"))
		begins, goesOn := strings.HasPrefix(line, "$ "), strings.HasPrefix(line, "> ") || line == ">\n"
		if inside && (begins || mark != "") {
			b.WriteString(waiting)
			waiting = ""
		}
		switch {
		case mark != "":
			inside = !inside && word == "console"
		case inside && begins:
			waiting = printed[n]
		case inside && !goesOn:
			continue // what was printed before
		}
		b.WriteString(line)
	}
	return b.String()
}

func TestRewrite(t *testing.T) {
	document := "a\n```console\n$ one\nold\n$ two \\\n> more\nold\n(exit 1)\n```\n```sh\n$ not run\nkept\n```\nold\n"
	want := "a\n```console\n$ one\n1\n$ two \\\n> more\n2\n(exit 3)\n```\n```sh\n$ not run\nkept\n```\nold\n"
	if diff := cmp.Diff(want, rewrite(document, map[int]string{3: "1\n", 5: "2\n(exit 3)\n"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := mask("1  command jq  4  1.2 kB  37.5\n3 stages, 61 ms; 4 kB out\nx /bin/mcsh\n", "/dir", "/bin"); got != "1  command jq  4  1.2 kB...\n3 stages, ...; 4 kB out\nx .../mcsh\n" {
		t.Errorf("got %q", got)
	}
}
