package doccheck

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A command is one command of a document with what it should do.
type command struct {
	line int // in the document
	text string
	want []string // lines of output; nil if any will do
	exit int
}

// parse returns the commands of a document.
func parse(document []byte) []command {
	var all []command
	open, kind := "", "" // the backquotes and the word that opened the block around a line
	lines := bufio.NewScanner(bytes.NewReader(document))
	lines.Buffer(nil, len(document)+1)
	for n := 1; lines.Scan(); n++ {
		mark, word := fenceOf(lines.Text())
		switch {
		case open == "":
			open, kind = mark, word
		case word == "" && len(mark) >= len(open):
			open = ""
		case kind == "console":
			all = add(all, n, lines.Text())
		}
	}
	for i := range all {
		all[i].finish()
	}
	return all
}

// finish takes the exit status from the end of the output, and the empty lines that set commands apart.
func (c *command) finish() {
	for len(c.want) > 0 && c.want[len(c.want)-1] == "" {
		c.want = c.want[:len(c.want)-1]
	}
	last := len(c.want) - 1
	if last < 0 {
		return
	}
	if _, err := fmt.Sscanf(c.want[last], "(exit %d)", &c.exit); err == nil {
		c.want = c.want[:last]
	}
	if len(c.want) == 0 {
		c.want = nil
	}
}

// fenceOf splits a line that opens or closes a block into its backquotes and the word after them.
func fenceOf(line string) (mark, info string) {
	rest := strings.TrimLeft(line, "`")
	if mark = line[:len(line)-len(rest)]; len(mark) < 3 {
		return "", ""
	}
	return mark, strings.TrimSpace(rest)
}

// add takes one line of a console block.
func add(all []command, n int, text string) []command {
	if rest, ok := strings.CutPrefix(text, "$ "); ok {
		return append(all, command{line: n, text: rest})
	}
	if len(all) == 0 {
		return all
	}
	last := &all[len(all)-1]
	if rest, ok := strings.CutPrefix(text, "> "); ok && last.want == nil {
		last.text += "\n" + rest
		return all
	}
	last.want = append(last.want, strings.TrimRight(text, " \t"))
	return all
}

// matches reports whether lines of output are as shown.
func matches(want, got []string) bool {
	return wildcard(want, got, func(w string) bool { return w == "..." }, func(w, g string) bool {
		return w == g || strings.Contains(w, "...") && wildcard(pieces(w), strings.Split(g, ""), func(p string) bool { return p == "..." },
			func(a, b string) bool { return a == b })
	})
}

// pieces splits a line into characters and "...".
func pieces(line string) []string {
	var all []string
	for i, part := range strings.Split(line, "...") {
		if i > 0 {
			all = append(all, "...")
		}
		all = append(all, strings.Split(part, "")...)
	}
	return all
}

// wildcard matches got against want, in which some elements stand for any number of elements.
func wildcard(want, got []string, all func(string) bool, same func(w, g string) bool) bool {
	w, g, star, from := 0, 0, -1, 0
	for g < len(got) {
		switch {
		case w < len(want) && all(want[w]):
			star, from = w, g
			w++
		case w < len(want) && same(want[w], got[g]):
			w, g = w+1, g+1
		case star >= 0:
			from++
			w, g = star+1, from
		default:
			return false
		}
	}
	for w < len(want) && all(want[w]) {
		w++
	}
	return w == len(want)
}

func TestParse(t *testing.T) {
	document := strings.Join([]string{
		"# Title", "```sh", "$ not run", "```", "text", "```console", "$ one", "1", "", "$ two \\", "> more", "```",
		"````console", "$ three", "```", "(exit 3)", "````", "$ no command",
	}, "\n")
	want := []command{
		{line: 7, text: "one", want: []string{"1"}},
		{line: 10, text: "two \\\nmore"},
		{line: 14, text: "three", want: []string{"```"}, exit: 3},
	}
	if diff := cmp.Diff(want, parse([]byte(document)), cmp.AllowUnexported(command{})); diff != "" {
		t.Errorf("parse (-want +got):\n%s", diff)
	}
}

func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		want, got string
		ok        bool
	}{
		{"a\nb", "a\nb", true},
		{"a", "a\nb", false},
		{"a\n...", "a\nb\nc", true},
		{"...\nc", "a\nb\nc", true},
		{"...\nb", "a\nb\nc", false},
		{"took ... ms", "took 17 ms", true},
		{"took ... ms", "took 17 s", false},
		{"...a...b", "xxaxxb", true},
		{"...", "", true},
	} {
		if got := matches(strings.Split(tt.want, "\n"), strings.Split(tt.got, "\n")); got != tt.ok {
			t.Errorf("matches(%q, %q) = %v", tt.want, tt.got, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("```console\n$ a\n> b\n...\n(exit 1)\n```\n"))
	f.Fuzz(func(t *testing.T, document []byte) {
		for _, c := range parse(document) {
			matches(c.want, strings.Split(string(document), "\n"))
		}
	})
}
