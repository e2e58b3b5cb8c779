package programs

import (
	"context"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
)

// The bounds of what one command may be given.
const (
	maxArgs     = 256
	maxArgBytes = 64 << 10
)

// A Program is one row of the table.
type Program struct {
	Name    string   // as a stage names it, such as "awk"
	Summary string   // what it does, in a few words
	Example []string // an argv after the name that is worth imitating
	Notes   string   // what differs from what people expect; often empty
	Differs []string // on the page of the program only: the rest of what differs, a sentence each

	Bin     string // the executable behind it, such as "gawk"; the path of an added one; empty for an applet
	Package string // the Debian package that brings Bin
	Mark    string // what the output of "Bin --version" holds when it is the implementation that the grammar describes

	Scratch   bool // it needs a private writable directory, which the environment variable TMPDIR names
	Locale    bool // it needs locale data to count characters rather than bytes
	Zoneinfo  bool // it needs the time zone data
	Asks      bool // it sees whether it can read a file before it opens it
	Walks     bool // it takes directories for files, too
	FilesOnly bool // it shows names and attributes of files, not what they hold: where there is no workspace, there is no such program
	Threads   bool // it cannot do without threads

	SuccessCodes []int // exit codes besides 0 that mean success

	// Errors matches what the program writes to standard error when it has failed and exits with 0; nil: it never does.
	Errors func() *regexp.Regexp

	options []option
	inject  []string // options that are always given, right after the name
	number  string   // the long name of the option that -5 means
	plus    bool     // +5 as first argument means it too, sign included
	inOrder bool     // options end at the first operand
	exact   bool     // long options cannot be abbreviated
	equals  bool     // -e=x means -e x, and a value that begins with "=" must stand apart so as not to lose that sign
	oneFile bool     // it reads one file at most
	byLine  string   // the option that asks for output line by line
	atInput string   // arguments that read the named input %[1]s, for hints; empty: it reads none
	script  string   // the option whose value is the script or the pattern, which is else the first operand; empty: there is no such thing
	dry     string   // the option with which a program on empty input reads its script and does not run it; empty: none is needed

	// arrange checks what options and operands mean together, and may change them. It may set inv's Argv and Timer.
	arrange arranger
	part    func(p *parsed) *Part  // see [Invocation]; nil: it does something else
	note    func(p *parsed) string // see [stages.Traits]; nil: there is none
	keeps   optionNames            // the options with which it keeps the kind of its input, see [stages.Traits]; nil: it does not

	// Traits that depend on the arguments, see [stages.Traits].
	stops, blocks, maps, givesValues says

	varies says // the output depends on more than arguments and input: the time, or chance
	ends   says // its input is given the newline that it lacks at its end
	tries  says // a run on empty input may show mistakes that no row of options does

	// Script says that its arguments hold a script, which only Ready reads.
	Script bool

	// Ready reads the arguments of a canonical Argv, without the name, and the named inputs, for a program that is part
	// of this module; else it reads the script alone, and there is no Runner. It is meant for a jailed process of its own:
	// neither memory nor time is bounded here. Each call of the Runner says what Ready could not do, with the exit code.
	Ready func(args []string, input Inputs) (Runner, Verdict)
}

// says answers a question about arguments. Nil says no.
type says func(p *parsed) bool

func (f says) of(p *parsed) bool { return f != nil && f(p) }

// Inputs opens a named input.
type Inputs = func(name string) (io.Reader, error)

// A Runner is a program that has read its arguments. It may be called again when it has returned, and keeps nothing
// from one call to the next.
type Runner func(ctx context.Context, io IO) int

// IO is what a program of this module reads and writes.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
}

// An Invocation is a program with arguments that were accepted.
type Invocation struct {
	// Argv is canonical: the executable (or the applet's name), the options with their values attached, then "--"
	// and the operands. The process gets it byte for byte.
	Argv []string

	// Timer is above zero for sleep: no process is needed, only a timer.
	Timer time.Duration

	// Part is there where no process is needed either: the program passes on a part of its standard input.
	Part *Part

	// EndLine says that the newline that its standard input lacks at the end is given to it.
	EndLine bool

	// Inputs are the names of the inputs that it reads besides its standard input, in the order of their first use.
	// Argv holds each as a file "@NAME" of the working directory.
	Inputs []string

	// Files are the names of the files of the workspace that it reads, relative to it. It runs in the workspace then.
	Files []string

	// Traits are as far as the options tell. [Invocation.Judge] adds what the script tells.
	Traits stages.Traits

	program *Program
	tries   bool
	bare    []string // Argv without files, for a probe; nil if there are none

	judged []string // see Judged; nil: Argv

	// ScriptAt is the index of the argument that is the script, or the pattern; -1 if there is none.
	ScriptAt int
}

// Judged is what the verdict on the script depends on: equal texts have equal verdicts.
func (inv Invocation) Judged() []string {
	if inv.judged != nil {
		return inv.judged
	}
	return inv.Argv
}

// LineBuffered returns the invocation changed so that the program writes every line as soon as it has it, where the
// program can do that; otherwise it returns the invocation as it is. It costs speed: it is worth it where the reader
// may stop early.
func (inv Invocation) LineBuffered() Invocation {
	return inv.with(inv.program.byLine)
}

// with adds an option that is not there; none, if it is empty.
func (inv Invocation) with(option string) Invocation {
	if option == "" || slices.Contains(inv.Argv, option) {
		return inv
	}
	inv.Argv = slices.Insert(slices.Clone(inv.Argv), 1+len(inv.program.inject), option)
	return inv
}

// Parse checks a command's arguments and returns them in canonical form. It runs nothing, and equal arguments give
// equal results. Parsing a canonical argv (without its first element) gives that argv again. The error is a *stages.Error,
// DISALLOWED_COMMAND or DISALLOWED_ARGUMENT.
func Parse(name string, args []string, there Given) (Invocation, error) {
	p, ok := there.Added.Find(name)
	if !ok || p.FilesOnly && !there.Files {
		return Invocation{}, there.Added.unknownCommand(name, args)
	}
	if err := withinBounds(name, args); err != nil {
		return Invocation{}, err
	}
	inv, err := p.parse(args, there)
	if err != nil {
		return Invocation{}, p.apart(args, there, err)
	}
	for _, input := range there.Inputs {
		if !slices.Contains(inv.Inputs, input) {
			return Invocation{}, notRead(p, input)
		}
	}
	return inv, nil
}

func withinBounds(name string, args []string) *stages.Error {
	size := 0
	for i, arg := range args {
		size += len(arg)
		if strings.IndexByte(arg, 0) >= 0 {
			return refuse(i, `write it as an escape that the program reads, such as \0, or drop it`,
				"%s: argument %d contains a NUL byte", name, i+1)
		}
	}
	switch {
	case len(args) > maxArgs:
		return tooMany(name, len(args))
	case size > maxArgBytes:
		return refuse(-1, "give data to the command as its input, not as arguments",
			"%s: the arguments take %d bytes, but at most %d are allowed", name, size, maxArgBytes)
	}
	return nil
}

func tooMany(name string, n int) *stages.Error {
	return refuse(-1, "give data to the command as its input, not as arguments",
		"%s: %d arguments, but at most %d are allowed", name, n, maxArgs)
}

// parse reads args and writes them anew.
func (p *Program) parse(args []string, there Given) (Invocation, *stages.Error) {
	w, err := p.read(args, there.Values...)
	if err != nil {
		return Invocation{}, err
	}
	// A cluster of letters counts as the options that it is written out as.
	if len(w.words) > maxArgs {
		return Invocation{}, tooMany(p.Name, len(w.words))
	}
	w.given = there
	if w.has("version") {
		return Invocation{program: &Program{}, Argv: []string{p.called(), "--version"}, Traits: stages.Traits{Replayable: true}}, nil
	}
	inv := Invocation{program: p, ScriptAt: w.scriptAt()}
	if p.arrange != nil {
		if err := p.arrange(w, &inv); err != nil {
			return Invocation{}, err
		}
	}
	if err := w.judgeValues(args, there, inv); err != nil {
		return Invocation{}, err
	}
	if inv.Inputs, err = w.inputs(there.Inputs); err != nil {
		return Invocation{}, err
	}
	if inv.Argv == nil {
		inv.Argv = w.argv()
	}
	if inv.Files = w.named(); inv.Files != nil {
		if inv.Inputs != nil {
			return Invocation{}, mixed(p.Name)
		}
		without := *w
		without.words = slices.Clone(w.words)
		without.drop(func(w word) bool { return w.file })
		inv.bare = without.argv()
	}
	inv.Traits = w.traits(inv)
	if p.part != nil && inv.Inputs == nil && inv.Files == nil {
		inv.Part = p.part(w)
	}
	inv.EndLine = inv.Files == nil && p.ends.of(w)
	inv.tries = len(inv.Inputs) == 0 && p.tries.of(w)
	return inv, nil
}

// traits are what the options say about how the program handles its data.
func (p *parsed) traits(inv Invocation) stages.Traits {
	t := stages.Traits{
		StopsEarly: p.stops.of(p),
		Blocking:   p.blocks.of(p),
		Replayable: inv.Files == nil && !p.varies.of(p), // the files may be others by then
		MapsLines:  inv.Inputs == nil && inv.Files == nil && p.maps.of(p),
		KeepsKind:  inv.Files == nil && p.keeps.only(p),
		Values:     p.givesValues.of(p),
	}
	if p.note != nil {
		t.Note = p.note(p)
	}
	return t
}
