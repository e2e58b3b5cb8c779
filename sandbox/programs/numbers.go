package programs

import (
	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

var numberPrograms = []Program{
	{
		Name: "bc", Summary: "calculate with any precision; the input holds the expressions",
		Example: []string{"-l"},
		Bin:     "bc", Package: "bc", Mark: "Free Software Foundation", Locale: true,
		Errors: lazy.Regexp(`(?m)^(Runtime error|\(standard_in\) \d+: [^(])`), // warnings are in parentheses
		inject: []string{"-q"}, arrange: bcOperands, ends: always,
		options: []option{
			flag('l', "mathlib"), skip('q', "quiet", nothing), flag('s', "standard"), flag('w', "warn"), alias('v', "", "version"),
			deny('i', "interactive", nothing, "there is nobody to talk to", useNothing),
			deny('h', "", nothing, "it is the usage text", useNothing),
		},
	},
	{
		Name: "numfmt", Summary: "convert numbers to and from forms such as 1.5K or 3Gi",
		Example: []string{"--field=2", "--to=iec"},
		Bin:     "numfmt", Package: "coreutils", Mark: coreutils, Locale: true,
		tries: given, maps: numfmtMaps,
		options: []option{
			flag(0, "debug"), value('d', "delimiter", cutDelimiter), value(0, "field", ranges),
			value(0, "format", numberFormat), value(0, "from", scale), value(0, "to", scale),
			value(0, "from-unit", factor), value(0, "to-unit", factor), flag(0, "grouping"),
			optional(0, "header", count), value(0, "invalid", oneOf("abort", "fail", "warn", "ignore")),
			value(0, "padding", number(-maxWidth, maxWidth)),
			value(0, "round", oneOf("up", "down", "from-zero", "towards-zero", "nearest")),
			value(0, "suffix", atMost(64)), flag('z', "zero-terminated"),
		},
	},
}

func bcOperands(p *parsed, inv *Invocation) *stages.Error {
	for _, w := range p.operands() {
		if w.value != "-" && shellWords[w.value] == "" && !isInputName(w.value) {
			return refuse(w.at, `put a stage before that writes the expression: {"type":"command","command":"jq","args":["-nr",`+
				texts.JSON(texts.JSON(w.value))+`]}`, "%s: %s is read as the name of a file, and there are none", p.Name, texts.Quote(w.value))
		}
	}
	return stdinOnly(p, inv)
}

var (
	scale  = oneOf("none", "auto", "si", "iec", "iec-i")
	factor = like(`[0-9]{1,12}(\.[0-9]{1,12})?([KMGTPEZY]i?)?`, "give a size such as 1000 or 1Ki")
)

// wide finds a width or precision in a printf or strftime format that is beyond maxWidth.
var wide = lazy.Regexp(`%[-+ '0_^#.:0-9]*[0-9]{6,}`)

func numberFormat(v string) *problem {
	if wide().MatchString(v) {
		return &problem{"the width is too large", "use a width of at most 99999"}
	}
	return nil
}
