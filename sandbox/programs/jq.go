package programs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/sandbox/programs/jq"
	"github.com/mcsh-dev/mcsh/stages"
)

var jqProgram = Program{
	Name: "jq", Summary: "query, reshape and build JSON",
	Example: []string{"-c", "map({id, name: .user.name})"},
	Notes: "It is gojq. Object keys come out sorted, those of keys_unsorted and to_entries too. Integers of any size are exact; other numbers keep their " +
		"digits while they are only passed on. Regular expressions are RE2's: no look-around, no back-references. There are no files, modules, " +
		"environment, input_filename or $__loc__. fromcsv and fromtsv read text with a header row: jq -R -s fromcsv gives one array of objects with " +
		"string values; frompy reads what Python prints: jq -R -s frompy. --slurpfile NAME @b and --rawfile NAME @b read a named input.",
	Differs: jqDiffers,
	Script:  true, Ready: readyJQ,
	exact: true, atInput: `["--slurpfile", "%[1]s", "@%[1]s", "map(. + {other: $%[1]s[0]})"]`,
	arrange: arrangeJQ, givesValues: jqWritesValues,
	options: jqOptions,
}

// jqDiffers says how this jq differs from the one in C, versions 1.6 to 1.8. testdata/jqdiffers.json has examples.
var jqDiffers = []string{
	"Object keys are always sorted: in the output, in keys_unsorted, to_entries, paths, tojson and .[].",
	"Integers of any size are exact, in arithmetic and comparisons too. Other numbers keep their digits while they are only passed on.",
	"Regular expressions are RE2's: no look-around, no back-references and no possessive operators; \\w, \\d, \\b and [[:alpha:]] know ASCII only (\\p{L} is any letter); $ is the very end of the text, (?m)$ also that of a line.",
	"The flags of test, match, sub and others are g, i and m (a dot matches line ends); not x, s, n, l and p.",
	"There are no $__loc__, input_filename, get_search_list and modules: a program has no file.",
	"env and $ENV are empty.",
	"A number in brackets takes a character out of a string: \"abc\"[0] is \"a\".",
	"strptime reads the offset of %z and mktime counts it; a day that is not given is the first of its month.",
	"gamma is the gamma function; its logarithm is lgamma.",
	"fromjson reads no NaN.",
	"A format such as @base64 stands before a key of an object only in parentheses: {(@base64 \"x\"): 1}.",
	"Errors are worded differently: do not compare their texts in catch.",
}

var jqOptions = []option{
	flag('n', "null-input"), flag('r', "raw-output"), flag('j', "join-output"), flag('a', "ascii-output"),
	flag(0, "raw-output0"), flag('c', "compact-output"), flag(0, "tab"), value(0, "indent", number(0, 7)),
	flag('s', "slurp"), flag('R', "raw-input"), flag(0, "stream"), flag(0, "seq"), flag('e', "exit-status"),
	pair("arg"), pair("argjson"), flag(0, "args"), flag(0, "jsonargs"),
	alias('V', "", "version"),
	skip('S', "sort-keys", nothing), skip('M', "monochrome-output", nothing), skip('C', "color-output", nothing),
	skip(0, "unbuffered", nothing),
	deny('f', "from-file", one, readsFile, "give the filter as an argument; it may have several lines"),
	deny('L', "library-path", one, "there are no modules", "define functions in the filter: def f: …; …"),
	reads(0, "slurpfile", two, `give small values with --argjson NAME JSON, others with "inputs": {"b": [stages]} and --slurpfile NAME @b`),
	reads(0, "rawfile", two, `give small texts with --arg NAME TEXT, others with "inputs": {"b": [stages]} and --rawfile NAME @b`),
	deny(0, "argfile", two, "jq has removed it", "write --slurpfile NAME @b, whose $NAME is an array of the values"),
	deny(0, "run-tests", maybe, readsFile, useNothing),
	deny(0, "stream-errors", nothing, "it is not built", "use --stream"),
	deny(0, "debug-dump-disasm", nothing, "it is about the interpreter", useNothing),
	deny('h', "", nothing, "it is the usage text", "list_available_shell_commands describes jq"),
}

// looksLikeFile matches a filter that is the name of a file: what "jq file.json" puts in the filter's place.
var looksLikeFile = lazy.Regexp(`^(~?/|\.\.?/)?[\w./-]*[\w-]\.(json|jsonl|ndjson|geojson|txt|csv|tsv|log|ya?ml)$|^(~?/|\.\.?/)[\w./-]+$`)

// arrangeJQ writes the argv anew. The filter is not read here but in the jail, see [Program.Verdict].
func arrangeJQ(p *parsed, inv *Invocation) *stages.Error {
	if ops := p.operands(); len(ops) > 0 {
		if looksLikeFile().MatchString(ops[0].value) {
			return refuse(ops[0].at, useStdin+`; jq's first argument is the filter, such as ".items[]"`,
				"jq: %s is the name of a file, and there are none", texts.Quote(ops[0].value))
		}
		if err := quotedScript(p, ops[0]); err != nil {
			return err
		}
	}
	options, err := jqMeaning(p)
	if err != nil {
		return err
	}
	inv.Argv = jqArgv(p, options)
	same := *p
	same.words = slices.Clone(p.words)
	for i, w := range same.words {
		if w.is("argjson") { // its values are known to be JSON, and the program is compiled without them
			same.words[i].second = "null"
		}
	}
	inv.judged = jqArgv(&same, options)
	return nil
}

// jqMeaning turns words into what they mean. The first operand is the filter; the others are values for $ARGS.positional.
func jqMeaning(p *parsed) (jq.Options, *stages.Error) {
	o := jq.Options{Filter: ".", Indent: "  "}
	mode, seen := "", false
	for i, w := range p.words {
		switch {
		case w.opt == nil && !seen:
			o.Filter, seen = w.value, true
		case w.opt == nil && mode == "":
			if err := p.reads(i); err != nil { // its input, which is not for the argv
				return o, err
			}
		case w.opt == nil:
			v := jq.Var{Text: w.value, JSON: mode == "jsonargs"}
			if err := v.Check(); err != nil {
				return o, refuse(w.at, "give a JSON value, or use --args for texts", "jq: --jsonargs %s: %s", texts.Quote(w.value), err)
			}
			o.Positional = append(o.Positional, v)
		case w.opt.long == "args" || w.opt.long == "jsonargs":
			mode = w.opt.long
		case w.opt.takes == two:
			v := jq.Var{Name: w.value, Text: w.second, JSON: w.opt.long == "argjson" || w.opt.long == "slurpfile", Input: w.opt.input}
			if err := v.Check(); err != nil {
				return o, refuse(w.at, "write --arg NAME TEXT, --argjson NAME JSON or --slurpfile NAME @INPUT; the filter reads it as $NAME",
					"jq: --%s %s %s: %s", w.opt.long, texts.Quote(w.value), texts.Quote(w.second), err)
			}
			o.Named = append(o.Named, v)
		default:
			jqFlags[w.opt.long](&o, w.value)
		}
	}
	return o, nil
}

// jqFlags says what each option means. As in jq the last of -c, --tab and --indent wins.
var jqFlags = map[string]func(o *jq.Options, value string){
	"null-input":     func(o *jq.Options, _ string) { o.NullInput = true },
	"raw-output":     func(o *jq.Options, _ string) { o.Raw = true },
	"join-output":    func(o *jq.Options, _ string) { o.Join = true },
	"raw-output0":    func(o *jq.Options, _ string) { o.Raw0 = true },
	"ascii-output":   func(o *jq.Options, _ string) { o.ASCII = true },
	"compact-output": func(o *jq.Options, _ string) { o.Indent = "" },
	"tab":            func(o *jq.Options, _ string) { o.Indent = "\t" },
	"indent":         func(o *jq.Options, v string) { o.Indent = strings.Repeat(" ", int(v[len(v)-1]-'0')) },
	"slurp":          func(o *jq.Options, _ string) { o.Slurp = true },
	"raw-input":      func(o *jq.Options, _ string) { o.RawInput = true },
	"stream":         func(o *jq.Options, _ string) { o.Stream = true },
	"seq":            func(o *jq.Options, _ string) { o.Seq = true },
	"exit-status":    func(o *jq.Options, _ string) { o.ExitStatus = true },
}

// jqArgv writes the options first and the filter and the values after "--". Where texts and JSON values are mixed, all
// become JSON.
func jqArgv(p *parsed, o jq.Options) []string {
	argv := []string{"jq"}
	for _, w := range p.words {
		if w.opt != nil && w.opt.long != "args" && w.opt.long != "jsonargs" {
			argv = append(argv, w.spell()...)
		}
	}
	mode := "--args"
	for _, v := range o.Positional {
		if v.JSON {
			mode = "--jsonargs"
		}
	}
	if len(o.Positional) > 0 {
		argv = append(argv, mode)
	}
	argv = append(argv, "--", o.Filter)
	for _, v := range o.Positional {
		if mode == "--jsonargs" && !v.JSON {
			v.Text = texts.JSON(v.Text)
		}
		argv = append(argv, v.Text)
	}
	return argv
}

// readyJQ compiles jq's filter and loads its named inputs. Like jq it exits with 2 for wrong arguments and 3 for a
// filter that cannot be compiled.
func readyJQ(args []string, input Inputs) (Runner, Verdict) {
	p, err := canonical("jq", jqOptions, args)
	if err != nil {
		return failing(2, err.Msg), verdictOf(err)
	}
	if p.has("version") {
		return saying("jq-1.7 (gojq 0.12.20)"), Verdict{}
	}
	options, err := jqMeaning(p)
	if err != nil {
		return failing(2, err.Msg), verdictOf(err)
	}
	filter, wrong := jq.Compile(options)
	if wrong != nil {
		return failing(3, "jq: "+strings.TrimPrefix(wrong.Error(), "jq: ")), Verdict{Mistake: wrong.Error(), Hint: wrong.Hint}.bounded()
	}
	verdict := Verdict{StopsEarly: filter.StopsEarly(), Varies: filter.AsksTime()}
	if err := filter.Load(input); err != nil {
		return failing(2, "jq: error: "+err.Error()), verdict
	}
	return func(ctx context.Context, files IO) int { return filter.Run(ctx, files.In, files.Out, files.Err) }, verdict
}

// canonical reads the arguments of a canonical Argv, for which only the options count.
func canonical(name string, options []option, args []string) (*parsed, *stages.Error) {
	return (&Program{Name: name, options: options}).read(args)
}

// saying is a program that writes a line.
func saying(line string) Runner {
	return func(_ context.Context, files IO) int {
		fmt.Fprintln(files.Out, line)
		return 0
	}
}

// failing is a program that cannot do more than say why.
func failing(code int, message string) Runner {
	return func(_ context.Context, files IO) int {
		fmt.Fprintln(files.Err, message)
		return code
	}
}
