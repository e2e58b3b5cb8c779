package programs

import "github.com/mcsh-dev/mcsh/stages"

var fieldPrograms = []Program{
	{
		Name: "cut", Summary: "print parts of every line",
		Example: []string{"-d", ",", "-f", "1,3"},
		Notes:   "The separator of -d is one byte, a tab by default; for more, use awk -F. -c counts bytes, as -b does: to cut characters beyond ASCII use jq -R -r '.[0:3]'.",
		Bin:     "cut", Package: "coreutils", Mark: coreutils, Locale: true,
		arrange: cutOperands, tries: given, maps: cutMaps, note: cutNote,
		options: []option{
			value('b', "bytes", ranges), value('c', "characters", ranges), value('f', "fields", ranges),
			value('d', "delimiter", cutDelimiter), flag('s', "only-delimited"), flag('z', "zero-terminated"),
			flag(0, "complement"), value(0, "output-delimiter", nil), skip('n', "", nothing),
		},
	},
	{
		Name: "paste", Summary: "join lines side by side: every \"-\" takes one line; -s joins all lines into one",
		Example: []string{"-s", "-d", ","}, Notes: "Named inputs stand beside: paste - @b.",
		Bin: "paste", Package: "coreutils", Mark: coreutils, Locale: true,
		arrange: dashesAndInputs, atInput: `["-", "@%s"]`, tries: givenAny("delimiters"),
		options: []option{value('d', "delimiters", nil), flag('s', "serial"), flag('z', "zero-terminated")},
	},
	{
		Name: "column", Summary: "line text up in columns (-t), or make JSON of a table (-J)",
		Example: []string{"-t", "-s", ","},
		Bin:     "column", Package: "bsdextrautils", Mark: utilLinux, Locale: true,
		arrange: stdinOnly, tries: given,
		options: []option{
			flag('t', "table"), value('n', "table-name", nil), value('O', "table-order", columns),
			value('N', "table-columns", columns), value('l', "table-columns-limit", number(1, maxWidth)),
			value('E', "table-noextreme", columns), flag('d', "table-noheadings"), flag('e', "table-header-repeat"),
			value('H', "table-hide", columns), value('R', "table-right", columns), value('T', "table-truncate", columns),
			value('W', "table-wrap", columns), flag('L', "keep-empty-lines"), alias(0, "table-empty-lines", "keep-empty-lines"),
			flag('J', "json"), value('r', "tree", columns), value('i', "tree-id", columns), value('p', "tree-parent", columns),
			value('c', "output-width", like(`[0-9]{1,5}|unlimited`, "give a width such as 120")), alias(0, "columns", "output-width"),
			value('o', "output-separator", atMost(64)), value('s', "separator", nil), flag('x', "fillrows"),
			alias('V', "", "version"), deny('h', "", nothing, "it is the usage text", useNothing),
		},
	},
}

// cutNote warns of -c, which counts bytes.
func cutNote(p *parsed) string {
	if !p.has("characters") {
		return ""
	}
	return "note: cut -c counts bytes and splits characters that are not ASCII: use jq -R -r '.[0:3]' where the input has some"
}

func cutDelimiter(v string) *problem {
	if v == "" {
		return nil // NUL
	}
	return oneByte("use awk -F, whose separator may be longer and a regular expression")(v)
}

func cutOperands(p *parsed, inv *Invocation) *stages.Error {
	n := 0
	for _, name := range []string{"bytes", "characters", "fields"} {
		n += len(p.values(name))
	}
	if n != 1 {
		return refuse(-1, `for example "args": ["-d", ",", "-f", "1,3"]`, "%s: exactly one of -b, -c and -f is needed", p.Name)
	}
	return stdinOnly(p, inv)
}

// columns are the names or numbers of columns.
var columns = like(`[^\x00-\x1f]*`, "give names or numbers, separated by commas")
