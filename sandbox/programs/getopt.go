package programs

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// always is for programs that gather, or give another output each time, with any arguments.
func always(*parsed) bool { return true }

// A word is an option with its values, or an operand if opt is nil.
type word struct {
	opt    *option
	value  string
	second string // of an option that takes two
	has    bool   // whether there is a value
	at     int    // the index of the argument where it began
	from   int    // that of its value, if it is an argument of its own
	source string // the input that it names, as @NAME; empty: none
	file   bool   // of an operand: it is the name of a file to read
}

// parsed are the words of an argv, in order, as a program reads them.
type parsed struct {
	*Program
	words []word
	given Given // what operands may name
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

// read splits args into words, as getopt_long does. Options that the program's row does not have are refused.
// Arguments that are values are operands.
func (p *Program) read(args []string, values ...int) (*parsed, *stages.Error) {
	r := &reader{parsed: parsed{Program: p}, args: args, values: values}
	for r.next < len(args) {
		arg := args[r.next]
		at := r.next
		r.next++
		var err *stages.Error
		switch {
		case r.operandsOnly || arg == "-" || slices.Contains(values, at) || !strings.HasPrefix(arg, "-"):
			err = r.operand(at, arg)
		case arg == "--":
			r.operandsOnly = true
		case strings.HasPrefix(arg, "--"):
			err = r.longOption(at, arg[2:])
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
	values       []int
	next         int // the index of the first argument not read
	operandsOnly bool
}

func (r *reader) operand(at int, arg string) *stages.Error {
	if r.plus && at == 0 && !r.operandsOnly && isPlusNumber(arg) && !slices.Contains(r.values, at) {
		return r.add(word{opt: r.long(r.number), value: arg, has: true, at: at})
	}
	if r.inOrder {
		r.operandsOnly = true
	}
	r.words = append(r.words, word{value: arg, at: at})
	return nil
}

// longOption reads "name" or "name=value".
func (r *reader) longOption(at int, arg string) *stages.Error {
	name, val, has := strings.Cut(arg, "=")
	o, err := r.find(at, name)
	if err != nil {
		return err
	}
	if has && o.takes == nothing && o.fate == kept {
		return refuse(at, "write --"+o.long, "%s: --%s takes no value", r.Name, o.long)
	}
	return r.complete(word{opt: o, value: val, has: has, at: at})
}

// cluster reads short options that stand together, the last of which may have its value attached.
func (r *reader) cluster(at int, letters string) *stages.Error {
	for i := 0; i < len(letters); i++ {
		w := word{opt: r.short(letters[i]), at: at}
		digits := leadingDigits(letters[i:])
		switch {
		case w.opt == nil && (digits == "" || r.number == ""):
			c, _ := utf8.DecodeRuneInString(letters[i:])
			return r.unknown(at, "-"+string(c), letters)
		case w.opt == nil:
			w = word{opt: r.long(r.number), value: digits, has: true, at: at}
			i += len(digits) - 1
		default:
			if w.opt = r.canonical(w.opt); w.opt.takes == nothing {
				break
			}
			w.value, w.has = letters[i+1:], i+1 < len(letters)
			if r.equals {
				w.value = strings.TrimPrefix(w.value, "=")
			}
			return r.complete(w)
		}
		if err := r.add(w); err != nil {
			return err
		}
	}
	return nil
}

// find looks a long option up, abbreviated or not.
func (r *reader) find(at int, name string) (*option, *stages.Error) {
	if name == "" {
		return nil, r.unknown(at, "--", "")
	}
	if o := r.long(name); o != nil {
		return r.canonical(o), nil
	}
	var found []*option
	var names []string
	for o := range r.each {
		if r.exact || !strings.HasPrefix(o.long, name) || len(found) == 1 && found[0] == r.canonical(o) {
			continue
		}
		found, names = append(found, r.canonical(o)), append(names, "--"+o.long)
	}
	switch len(found) {
	case 0:
		return nil, r.unknown(at, "--"+name, "")
	case 1:
		return found[0], nil
	}
	return nil, refuse(at, "write the option in full: "+strings.Join(names, ", "),
		"%s: --%s is ambiguous", r.Name, texts.Cut(name, maxShown))
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
				"%s: %s takes its two values as arguments of their own", r.Name, w.opt)
		}
		if r.next+int(w.opt.takes/two) >= len(r.args) {
			return refuse(w.at, "give the value as the next argument", "%s: %s needs %s", r.Name, w.opt,
				map[takes]string{one: "a value", two: "two values"}[w.opt.takes])
		}
		w.value, w.has, w.from = r.args[r.next], true, r.next
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
				return noInput(r.Name, w.at, arg)
			}
		}
		return refuse(w.at, o.use, "%s: %s is not available: %s", r.Name, o, o.why)
	}
	if o.input {
		if w.source = w.value; o.takes == two {
			w.source = w.second
		}
		if !isInputName(w.source) {
			return refuse(w.at, o.use, "%s: %s %s is not available: there are no files, only named inputs such as @b", r.Name, o, texts.Quote(w.source))
		}
	}
	if o.check != nil && w.has {
		if bad := o.check(w.value); bad != nil {
			return refuse(w.at, bad.use, "%s: %s %s: %s", r.Name, o, texts.Quote(w.value), bad.why)
		}
	}
	if o.fate == kept {
		r.words = append(r.words, w)
	}
	return nil
}

// argv writes p anew: the executable, what is injected, the options with their values attached, and the operands.
func (p *parsed) argv() []string {
	argv := append([]string{p.called()}, p.inject...)
	for _, w := range p.words {
		switch {
		case w.opt == nil:
		case p.equals && strings.HasPrefix(w.value, "="):
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

// called returns the name that the program has as a process. A program that is several by its name sees that of the command.
func (p *Program) called() string {
	if p.Bin == "" || path.IsAbs(p.Bin) {
		return p.Name
	}
	return p.Bin
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
