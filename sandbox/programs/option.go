package programs

// takes says how many values an option takes.
type takes uint8

const (
	nothing takes = iota
	one
	maybe // only when attached: --check=quiet, -Ins
	two   // as following words, jq's --arg NAME VALUE
)

// fate says what becomes of an option that was given.
type fate uint8

const (
	kept    fate = iota
	ignored      // accepted and left out: the canonical argv has its own, or it has no effect here
	refused
)

// An option is one that a program takes, or that is refused with a reason.
type option struct {
	short byte   // 0 if there is none
	long  string // "" if there is none
	takes takes
	fate  fate
	check check  // of the value; nil allows every value
	as    string // the long name of the option that this one is another spelling of
	input bool   // its value, the last of two, is the name of an input
	why   string // of a refusal
	use   string // what to use instead
}

// The constructors of rows. A zero short or an empty long means that there is none.

func flag(short byte, long string) option { return option{short: short, long: long} }

func value(short byte, long string, c check) option {
	return option{short: short, long: long, takes: one, check: c}
}

func optional(short byte, long string, c check) option {
	return option{short: short, long: long, takes: maybe, check: c}
}

func pair(long string) option { return option{long: long, takes: two} }

// reads is an option that reads an input; use says what else there is.
func reads(short byte, long string, t takes, use string) option {
	return option{short: short, long: long, takes: t, input: true, use: use}
}

func alias(short byte, long, as string) option { return option{short: short, long: long, as: as} }

func skip(short byte, long string, t takes) option {
	return option{short: short, long: long, takes: t, fate: ignored}
}

func deny(short byte, long string, t takes, why, use string) option {
	return option{short: short, long: long, takes: t, fate: refused, why: why, use: use}
}

// The reasons of refusals that occur more than once.
const (
	readsFile   = "it reads a file, and a command sees nothing but what the stage before it wrote"
	writesFile  = "it writes a file, and a command writes only to the next stage"
	runsProgram = "it runs another program, and commands cannot"
	walksFiles  = "it is about files, and a command sees nothing but what the stage before it wrote"
	followsFile = "it waits for a file to grow, and a stage's input ends"

	useStdin   = "the data arrives as the command's input: put the stage that produces it before this one"
	useStdout  = "leave it out: the output goes to the next stage by itself"
	useNothing = "leave it out"
)

// option returns the row of a short option, nil if there is none.
func (p *Program) short(c byte) *option {
	return p.optionThat(func(o *option) bool { return o.short == c })
}

// long returns the row of a long option, nil if there is none.
func (p *Program) long(name string) *option {
	return p.optionThat(func(o *option) bool { return o.long == name })
}

func (p *Program) optionThat(is func(o *option) bool) *option {
	for o := range p.each {
		if is(o) {
			return o
		}
	}
	return nil
}

// each yields the rows of all options.
func (p *Program) each(yield func(*option) bool) {
	for _, rows := range [][]option{p.options, common} {
		for i := range rows {
			if !yield(&rows[i]) {
				return
			}
		}
	}
}

// canonical returns the row that o is another spelling of, or o.
func (p *Program) canonical(o *option) *option {
	if o.as == "" {
		return o
	}
	return p.long(o.as)
}

// String returns the option as one would write it, preferring the short form.
func (o *option) String() string { return o.names()[0] }

// names are its short and its long form, as far as it has them.
func (o *option) names() (names []string) {
	if o.short != 0 {
		names = append(names, "-"+string(rune(o.short)))
	}
	if o.long != "" {
		names = append(names, "--"+o.long)
	}
	return names
}
