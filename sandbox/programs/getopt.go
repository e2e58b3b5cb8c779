package programs

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// A grammar says which arguments a program takes. Options that are not in it are refused.
type grammar struct {
	inject  []string // always given, right after the name
	options []option

	number  string // the long name of the option that -5 means
	plus    bool   // +5 as first argument means it too, sign included
	inOrder bool   // options end at the first operand
	exact   bool   // long options cannot be abbreviated
	equals  bool   // -e=x means -e x, and a value that begins with "=" must stand apart so as not to lose that sign
	byLine  string // the option that asks for output line by line
	oneFile bool   // it reads one file at most
	inputs  string // arguments that read the named input %[1]s, for hints; empty: it reads none

	// arrange checks what options and operands mean together, and may change them. It may set inv's Argv and Timer.
	arrange func(p *parsed, inv *Invocation) *stages.Error
	stops   func(p *parsed) bool
	gathers func(p *parsed) bool   // see [stages.Traits]; nil: it does not
	note    func(p *parsed) string // see [stages.Traits]; nil: there is none

	maps func(p *parsed) bool  // whether it maps lines, see [stages.Traits]; nil: it may not
	part func(p *parsed) *Part // see [Invocation]; nil: it does something else

	keeps  options              // those with which it keeps the kind of its input, see [stages.Traits]; nil: it does not
	values func(p *parsed) bool // whether it writes JSON values, likewise; nil: it does not
	ends   func(p *parsed) bool // whether its input is given the newline that it lacks at its end; nil: it is not

	// varies says whether the output depends on more than arguments and input: the time, or chance. Nil: it does not.
	varies func(p *parsed) bool

	// tries says whether a run on empty input may show mistakes that this grammar does not. Nil: it may not.
	tries  func(p *parsed) bool
	dry    string // the option of such a run with which the program reads its script and does not run it; empty: none is needed
	script string // the option whose value is the script or the pattern, which is else the first operand; empty: there is no such thing
}

// always is for programs that do something whatever their arguments are: gather, or give another output each time.
func always(*parsed) bool { return true }

// A word is an option with its values, or an operand if opt is nil.
type word struct {
	opt    *option
	value  string
	second string // of an option that takes two
	has    bool   // whether there is a value
	at     int    // the index of the argument where it began
	input  bool   // of an operand: it is the name of an input
	file   bool   // of an operand: it is the name of a file to read
}

// parsed are the words of an argv, in order.
type parsed struct {
	name    string
	grammar *grammar
	words   []word
	files   bool // whether operands may name files
}

// has says whether an option was given; by its long name, or by its letter if it has no long name.
func (p *parsed) has(name string) bool {
	return slices.ContainsFunc(p.words, func(w word) bool { return w.is(name) })
}

func (w word) is(name string) bool {
	return w.opt != nil && (w.opt.long == name && name != "" || w.opt.long == "" && string(rune(w.opt.short)) == name)
}

// values returns the values of an option, in order.
func (p *parsed) values(name string) (vs []string) {
	for _, w := range p.words {
		if w.is(name) {
			vs = append(vs, w.value)
		}
	}
	return vs
}

// operands returns the words that are not options.
func (p *parsed) operands() (ops []word) {
	for _, w := range p.words {
		if w.opt == nil {
			ops = append(ops, w)
		}
	}
	return ops
}

// drop removes the operands for which f says so.
func (p *parsed) drop(f func(w word) bool) {
	p.words = slices.DeleteFunc(p.words, func(w word) bool { return w.opt == nil && f(w) })
}

// read splits args into words, as getopt_long does.
func (g *grammar) read(name string, args []string) (*parsed, *stages.Error) {
	r := &reader{parsed: parsed{name: name, grammar: g}, args: args}
	for r.next < len(args) {
		arg := args[r.next]
		at := r.next
		r.next++
		var err *stages.Error
		switch {
		case r.operandsOnly || arg == "-" || !strings.HasPrefix(arg, "-"):
			err = r.operand(at, arg)
		case arg == "--":
			r.operandsOnly = true
		case strings.HasPrefix(arg, "--"):
			err = r.long(at, arg[2:])
		default:
			err = r.cluster(at, arg[1:])
		}
		if err != nil {
			return nil, err
		}
	}
	return &r.parsed, nil
}

// A reader is the state of reading one argv.
type reader struct {
	parsed
	args         []string
	next         int // the index of the first argument not read
	operandsOnly bool
}

func (r *reader) operand(at int, arg string) *stages.Error {
	g := r.grammar
	if g.plus && at == 0 && !r.operandsOnly && isPlusNumber(arg) {
		return r.add(word{opt: g.long(g.number), value: arg, has: true, at: at})
	}
	if g.inOrder {
		r.operandsOnly = true
	}
	r.words = append(r.words, word{value: arg, at: at})
	return nil
}

// long reads "name" or "name=value".
func (r *reader) long(at int, arg string) *stages.Error {
	name, val, has := strings.Cut(arg, "=")
	o, err := r.find(at, name)
	if err != nil {
		return err
	}
	if has && o.takes == nothing && o.fate == kept {
		return refuse(at, "write --"+o.long, "%s: --%s takes no value", r.name, o.long)
	}
	return r.complete(word{opt: o, value: val, has: has, at: at})
}

// cluster reads short options that stand together, the last of which may have its value attached.
func (r *reader) cluster(at int, letters string) *stages.Error {
	for i := 0; i < len(letters); i++ {
		o := r.grammar.short(letters[i])
		if o == nil {
			digits := leadingDigits(letters[i:])
			if digits == "" || r.grammar.number == "" {
				c, _ := utf8.DecodeRuneInString(letters[i:])
				return r.unknown(at, "-"+string(c), letters)
			}
			if err := r.add(word{opt: r.grammar.long(r.grammar.number), value: digits, has: true, at: at}); err != nil {
				return err
			}
			i += len(digits) - 1
			continue
		}
		o = r.grammar.canonical(o)
		if o.takes == nothing {
			if err := r.add(word{opt: o, at: at}); err != nil {
				return err
			}
			continue
		}
		rest := letters[i+1:]
		has := rest != ""
		if r.grammar.equals {
			rest = strings.TrimPrefix(rest, "=")
		}
		return r.complete(word{opt: o, value: rest, has: has, at: at})
	}
	return nil
}

// find looks a long option up, abbreviated or not.
func (r *reader) find(at int, name string) (*option, *stages.Error) {
	g := r.grammar
	if name != "" {
		if o := g.long(name); o != nil {
			return g.canonical(o), nil
		}
	}
	var found []*option
	for i := range g.options {
		o := &g.options[i]
		if o.long == "" || g.exact || name == "" || !strings.HasPrefix(o.long, name) {
			continue
		}
		if len(found) == 1 && g.canonical(found[0]) == g.canonical(o) {
			continue
		}
		found = append(found, o)
	}
	switch len(found) {
	case 0:
		return nil, r.unknown(at, "--"+name, "")
	case 1:
		return g.canonical(found[0]), nil
	}
	var names []string
	for _, o := range found {
		names = append(names, "--"+o.long)
	}
	return nil, refuse(at, "write the option in full: "+strings.Join(names, ", "),
		"%s: --%s is ambiguous", r.name, texts.Cut(name, maxShown))
}

// complete gives an option the values that follow it as words of their own, and adds it.
func (r *reader) complete(w word) *stages.Error {
	// A refused option is refused for what it is, not for a value that is missing.
	if w.opt.fate == refused && w.opt.takes != two {
		if !w.has && w.opt.takes == one && r.next < len(r.args) {
			w.value = r.args[r.next]
		}
		return r.add(w)
	}
	if w.opt.takes == one && !w.has || w.opt.takes == two {
		if w.opt.takes == two && w.has {
			return refuse(w.at, "write "+w.opt.String()+` NAME VALUE, each an argument of its own`,
				"%s: %s takes its two values as arguments of their own", r.name, w.opt)
		}
		if r.next+int(w.opt.takes/two) >= len(r.args) {
			return refuse(w.at, "give the value as the next argument", "%s: %s needs %s", r.name, w.opt,
				map[takes]string{one: "a value", two: "two values"}[w.opt.takes])
		}
		w.value, w.has = r.args[r.next], true
		r.next++
		if w.opt.takes == two {
			w.second = r.args[r.next]
			r.next++
		}
	}
	return r.add(w)
}

// add appends a word after the checks of its row.
func (r *reader) add(w word) *stages.Error {
	o := w.opt
	if o.fate == refused {
		for _, arg := range []string{w.value, w.second} {
			if isInputName(arg) {
				return noInput(r.name, w.at, arg)
			}
		}
		return refuse(w.at, o.use, "%s: %s is not available: %s", r.name, o, o.why)
	}
	if o.input {
		if err := o.oneInput(r.name, w); err != nil {
			return err
		}
	}
	if o.check != nil && w.has {
		if bad := o.check(w.value); bad != nil {
			return refuse(w.at, bad.use, "%s: %s %s: %s", r.name, o, texts.Quote(w.value), bad.why)
		}
	}
	if o.fate == kept {
		r.words = append(r.words, w)
	}
	return nil
}

// argv writes p anew: the name, what is injected, the options with their values attached, and the operands.
func (g *grammar) argv(name string, p *parsed) []string {
	argv := append([]string{name}, g.inject...)
	for _, w := range p.words {
		switch {
		case w.opt == nil:
		case g.equals && strings.HasPrefix(w.value, "="):
			argv = append(argv, "--"+w.opt.long, w.value)
		default:
			argv = append(argv, w.spell()...)
		}
	}
	if ops := p.operands(); len(ops) > 0 {
		argv = append(argv, "--")
		for _, w := range ops {
			argv = append(argv, w.value)
		}
	}
	return argv
}

// spell writes an option so that it can be read in one way only.
func (w word) spell() []string {
	o := w.opt
	switch {
	case o.takes == two:
		return []string{"--" + o.long, w.value, w.second}
	case o.long != "" && w.has:
		return []string{"--" + o.long + "=" + w.value}
	case o.long != "":
		return []string{"--" + o.long}
	case w.has && w.value == "":
		return []string{o.String(), ""}
	}
	return []string{o.String() + w.value}
}

func leadingDigits(s string) string {
	return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
}

func isPlusNumber(s string) bool {
	return len(s) > 1 && s[0] == '+' && leadingDigits(s[1:]) == s[1:]
}
