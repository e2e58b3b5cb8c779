package programs

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/mcsh-dev/mcsh/stages"
)

var listPrograms = []Program{
	{
		Name: "ls", Summary: "list the files of a directory of the workspace",
		Example: []string{"-l", "."},
		Notes:   "-l shows users as numbers.",
		Bin:     "ls", Package: "coreutils", Mark: coreutils, Locale: true, Asks: true, Walks: true, FilesOnly: true,
		inject: []string{"--color=never", "--ignore=" + anyCase(private[0]), "--ignore=" + anyCase(private[1])}, exact: true, arrange: walked,
		options: []option{
			flag('a', "all"), flag('A', "almost-all"), flag('1', ""), flag('d', "directory"), flag('F', "classify"),
			flag('p', ""), flag('R', "recursive"), flag('r', "reverse"), flag('S', ""), flag('t', ""), flag('X', ""), flag('v', ""),
			flag('s', "size"), flag('h', "human-readable"), flag('n', "numeric-uid-gid"), alias('l', "", "numeric-uid-gid"),
			flag('G', "no-group"), flag('i', "inode"), flag('Q', "quote-name"),
			flag(0, "group-directories-first"), flag('B', "ignore-backups"),
			value('I', "ignore", nil), value(0, "hide", nil), flag(0, "si"), flag('k', "kibibytes"),
			value(0, "time-style", oneOf("full-iso", "long-iso", "iso", "locale")),
			value(0, "sort", oneOf("none", "size", "time", "version", "extension")),
			skip(0, "color", maybe),
			deny('L', "dereference", nothing, "a link may lead out of the workspace", useNothing),
			deny('H', "", nothing, "a link may lead out of the workspace", useNothing),
			deny('Z', "context", nothing, "it is about the security of the machine", useNothing),
			deny('w', "width", one, "there is no terminal", useNothing), deny('C', "", nothing, "there is no terminal", useNothing),
		},
	},
	{
		Name: "fd", Summary: "find files of the workspace whose names match a regular expression",
		Example: []string{"-e", "json", "orders"},
		Notes:   "Hidden files are left out. Directories come last: fd PATTERN DIR.",
		Bin:     "fdfind", Package: "fd-find", Mark: "fd", Asks: true, Walks: true, FilesOnly: true, Threads: true, SuccessCodes: []int{1},
		inject: []string{"--color=never", "--no-ignore", "--threads=1"}, exact: true, equals: true, arrange: walked,
		options: []option{
			flag('s', "case-sensitive"), flag('i', "ignore-case"), flag('g', "glob"), flag(0, "regex"), flag('F', "fixed-strings"),
			flag('p', "full-path"), value('d', "max-depth", count), value(0, "min-depth", count), value(0, "exact-depth", count),
			value('t', "type", oneOf("f", "file", "d", "directory", "l", "symlink", "e", "empty")),
			value('e', "extension", nil), value('E', "exclude", nil), value('S', "size", like(`[-+]?[0-9]{1,12}([bkmgtKMGT]i?b?)?`, "give a size such as +10k")),
			value(0, "max-results", count), flag('1', ""), flag('q', "quiet"),
			skip(0, "color", one), skip('j', "threads", one), skip('I', "no-ignore", nothing), alias('V', "", "version"),
			deny('x', "exec", one, runsProgram, useNothing), deny('X', "exec-batch", one, runsProgram, useNothing),
			deny('l', "list-details", nothing, runsProgram, "ls -l shows details"),
			deny('L', "follow", nothing, "a link may lead out of the workspace", useNothing),
			deny('H', "hidden", nothing, "what is hidden is not for commands", useNothing),
			deny('u', "unrestricted", nothing, "what is hidden is not for commands", useNothing),
			deny(0, "ignore-file", one, readsFile, useNothing), deny(0, "base-directory", one, walksFiles, "name the directory behind the pattern"),
			deny(0, "search-path", one, walksFiles, "name the directory behind the pattern"),
			deny('a', "absolute-path", nothing, "files have relative names here", useNothing),
			deny('h', "", nothing, "it is the usage text", useNothing),
		},
	},
}

// walked is for programs whose operands are what they list, those of fd behind the pattern; without any it is the workspace.
func walked(p *parsed, _ *Invocation) *stages.Error {
	patterns := 0
	if p.Name == "fd" {
		if patterns = 1; len(p.operands()) == 0 {
			p.words = append(p.words, word{value: ""})
		}
	}
	if err := p.take(patterns, false); err != nil {
		return err
	}
	if p.named() == nil {
		p.words = append(p.words, word{value: ".", file: true})
	}
	return nil
}

// anyCase returns a glob of ls that matches a name in lower case in any case.
func anyCase(name string) string {
	var b strings.Builder
	for _, c := range name {
		if upper := unicode.ToUpper(c); upper != c {
			fmt.Fprintf(&b, "[%c%c]", c, upper)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}
