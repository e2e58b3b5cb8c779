package programs

import (
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

var awk = Program{
	Name: "awk", Summary: "process lines by a program, split into fields (GNU awk)",
	Example: []string{"-F", ",", "{sum += $2} END {print sum}"},
	Notes:   "system(), pipes and redirections inside of the program are not available, /dev/stderr neither. For CSV use jq -R -s fromcsv.",
	Bin:     "gawk", Package: "gawk", Mark: "GNU Awk", Locale: true,
	Script: true, Ready: readAwk,
	inject: []string{"--sandbox"}, inOrder: true,
	script: "source", tries: given, dry: "--pretty-print=-",
	arrange: awkOperands,
	varies:  always, // rand and systime
	options: awkOptions,
}

// awkOptions are those of GNU awk 5.2.
var awkOptions = []option{
	value('F', "field-separator", nil),
	value('v', "assign", like(assignment+`(?s:.*)`, "write NAME=VALUE")),
	value('e', "source", nil), flag('b', "characters-as-bytes"), flag('M', "bignum"), flag('P', "posix"),
	flag('c', "traditional"), flag('r', "re-interval"), flag('n', "non-decimal-data"), flag('N', "use-lc-numeric"),
	flag('O', "optimize"), flag('s', "no-optimize"), alias('V', "", "version"),
	skip('S', "sandbox", nothing),
	deny('k', "csv", nothing, "only GNU awk 5.3 and later have it", "put a stage before that makes rows: jq -R -s -r 'fromcsv[] | [.name, .price] | @tsv', then awk -F with a tab"),
	deny('f', "file", one, readsFile, "give the program as an argument; it may have several lines"),
	deny('E', "exec", one, readsFile, "give the program as an argument"),
	deny('i', "include", one, readsFile, "give the program as an argument"),
	deny('l', "load", one, "it loads code from a file", useNothing),
	deny('D', "debug", maybe, "there is nobody to talk to a debugger", useNothing),
	deny('d', "dump-variables", maybe, writesFile, "print the variables in an END rule"),
	deny('o', "pretty-print", maybe, writesFile, useNothing),
	deny('p', "profile", maybe, writesFile, useNothing),
	deny('L', "lint", maybe, "its warnings are lost in a pipeline", useNothing),
	deny('t', "lint-old", nothing, "its warnings are lost in a pipeline", useNothing),
	deny('g', "gen-pot", nothing, "it translates programs", useNothing),
	deny('I', "trace", nothing, "it traces the interpreter", useNothing),
	deny('C', "copyright", nothing, "it is the license text", useNothing),
	deny('h', "", nothing, "it is the usage text", useNothing),
	deny('W', "", one, "it hides a long option", "write the long option itself"),
}

const assignment = `[A-Za-z_][A-Za-z0-9_]*=`

var (
	assigns = lazy.Regexp(`^` + assignment)
	exits   = lazy.Regexp(`\bexit\b`)

	// loads finds the directives that read other source files. The language wants a string literal after the word.
	loads = lazy.Regexp(`@[\s\\]*(include|load)[\s\\]*"`)
)

// awkSource returns the text of the program.
func awkSource(p *parsed) string {
	if p.has("source") {
		return strings.Join(p.values("source"), "\n")
	}
	if ops := p.operands(); len(ops) > 0 {
		return ops[0].value
	}
	return ""
}

// readAwk reads the program.
func readAwk(args []string, _ Inputs) (Runner, Verdict) {
	p, err := canonical("awk", awkOptions, args)
	if err != nil {
		return nil, verdictOf(err)
	}
	source := awkSource(p)
	if loads().MatchString(source) {
		return nil, Verdict{Mistake: "@include and @load are not available: " + readsFile, Hint: "write the functions into the program itself"}
	}
	if wrong, what := awkMistake(source); wrong != nil {
		return nil, Verdict{Mistake: texts.Quote(what) + ": " + wrong.why, Hint: wrong.use}.bounded()
	}
	return nil, Verdict{StopsEarly: exits().MatchString(source)}
}

// awkOperands checks that there is a program and that nothing but assignments and "-" follows it.
func awkOperands(p *parsed, _ *Invocation) *stages.Error {
	first := 0 // argument that is no script
	if !p.has("source") {
		rest := p.operands()
		if len(rest) == 0 {
			return refuse(-1, `for example "args": ["{print $1}"]`, "%s: the program is missing", p.Name)
		}
		if err := quotedScript(p, rest[0]); err != nil {
			return err
		}
		first = rest[0].at + 1
	}
	for i, w := range p.words {
		switch {
		case w.opt != nil || w.at < first || w.value == "-" || assigns().MatchString(w.value):
		case strings.HasPrefix(w.value, "-"):
			return refuse(w.at, "put options before the program", "%s: %s stands after the program, where only NAME=VALUE may stand",
				p.Name, texts.Quote(w.value))
		default:
			if err := p.reads(i); err != nil {
				return err
			}
		}
	}
	return nil
}
