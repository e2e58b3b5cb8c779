package programs

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

var textPrograms = []Program{
	{
		Name: "tr", Summary: "replace, squeeze or delete characters",
		Example: []string{"a-z", "A-Z"},
		Notes:   "Works on bytes, not on characters: for letters beyond ASCII use sed y/…/…/ or jq.",
		Bin:     "tr", Package: "coreutils", Mark: coreutils, Locale: true,
		inOrder: true, arrange: trSets, tries: given, maps: trMaps, note: trNote,
		options: []option{
			flag('c', "complement"), alias('C', "", "complement"), flag('d', "delete"), flag('s', "squeeze-repeats"),
			flag('t', "truncate-set1"),
		},
	},
	{
		Name: "base64", Summary: "encode to base64, or decode (-d)",
		Example: []string{"-w", "0"},
		Bin:     "base64", Package: "coreutils", Mark: coreutils, Locale: true,
		arrange: stdinOnly, oneFile: true,
		options: []option{
			flag('d', "decode"), alias('D', "", "decode"), flag('i', "ignore-garbage"), value('w', "wrap", count),
		},
	},
	{
		Name: "sha256sum", Summary: "print the SHA-256 checksum of the input",
		Bin: "sha256sum", Package: "coreutils", Mark: coreutils, Locale: true,
		arrange: stdinOnly,
		options: []option{
			flag('b', "binary"), flag('t', "text"), flag(0, "tag"), flag('z', "zero"),
			deny('c', "check", nothing, readsFile, "compare the printed sums with grep -F"),
			deny(0, "ignore-missing", nothing, readsFile, useNothing), deny(0, "quiet", nothing, readsFile, useNothing),
			deny(0, "status", nothing, readsFile, useNothing), deny(0, "strict", nothing, readsFile, useNothing),
			deny('w', "warn", nothing, readsFile, useNothing),
		},
	},
}

// trNote warns of sets in which one character is several bytes.
func trNote(p *parsed) string {
	for _, w := range p.operands() {
		if i := strings.IndexFunc(w.value, func(c rune) bool { return c >= utf8.RuneSelf }); i >= 0 {
			c, n := utf8.DecodeRuneInString(w.value[i:])
			return fmt.Sprintf("note: tr works on bytes, and %q is %d of them: use sed y/…/…/ or jq gsub", c, n)
		}
	}
	return ""
}

// repeats finds [x*N], which tr spells out in memory.
var repeats = lazy.Regexp(`\*([0-9]+)\]`)

func trSets(p *parsed, _ *Invocation) *stages.Error {
	const maxSet, maxRepeat = 4096, 1 << 16
	ops := p.operands()
	if len(ops) == 0 || len(ops) > 2 {
		hint := `for example "args": ["a-z", "A-Z"]`
		if len(ops) > 2 {
			hint = useStdin + "; tr takes no files"
		}
		return refuse(-1, hint, "%s: one or two sets of characters are needed, not %d", p.Name, len(ops))
	}
	for _, w := range ops {
		if len(w.value) > maxSet {
			return refuse(w.at, "at most 4096 bytes are allowed", "%s: the set %s is too long", p.Name, texts.Quote(w.value))
		}
		for _, m := range repeats().FindAllStringSubmatch(w.value, -1) {
			if n, err := strconv.ParseUint(m[1], 0, 63); err != nil || n > maxRepeat {
				return refuse(w.at, "at most 65536 repetitions are allowed", "%s: the set %s repeats a character too often", p.Name, texts.Quote(w.value))
			}
		}
	}
	return nil
}
