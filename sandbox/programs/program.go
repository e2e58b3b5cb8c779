package programs

import (
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
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

	Bin     string // the executable behind it, such as "gawk"; empty for an applet
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

	// Applet is the program itself where it is part of this module. It is meant to run in a jailed process of its
	// own: neither its memory nor its time is bounded here. args are those of a canonical Argv, without the name.
	Applet func(ctx context.Context, args []string, io IO) int

	// Ready, where it is there, does once what Applet does for each input alike: it reads args and the named inputs,
	// and returns the rest. What it could not do is said, with the exit code, by each call of that. The verdict is
	// about the script in args alone.
	Ready func(args []string, input func(name string) (io.Reader, error)) (Runner, Verdict)

	check func(p *parsed) Verdict // reads the script, where Ready does not; see [Program.Verdict]

	grammar func() *grammar // made when the first command is read: a worker reads none
}

// later makes a grammar when it is first needed.
func later(make func() grammar) func() *grammar {
	return sync.OnceValue(func() *grammar {
		g := make()
		return &g
	})
}

// A Runner is a program that has read its arguments. It may be called again when it has returned, and keeps nothing
// from one call to the next. Input of io is not used.
type Runner func(ctx context.Context, io IO) int

// IO is what an applet reads and writes.
type IO struct {
	In       io.Reader
	Out, Err io.Writer

	// Input opens a named input; nil where there are none.
	Input func(name string) (io.Reader, error)
}

// open opens the input that an argument names.
func (files IO) open(arg string) (io.Reader, error) {
	if files.Input == nil || arg == "" {
		return nil, errors.New("there are no inputs")
	}
	return files.Input(arg[1:])
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

	byLine string // the option that asks for output line by line, if there is one
	head   int    // where that option goes: after the name and what is injected

	tries bool
	bare  []string // Argv without files, for a probe; nil if there are none
	dry   string   // the option for a probe

	// ScriptAt is the index of the argument that is the script, or the pattern; -1 if there is none.
	ScriptAt int
}

// LineBuffered returns the invocation changed so that the program writes every line as soon as it has it, where the
// program can do that; otherwise it returns the invocation as it is. It costs speed: it is worth it where the reader
// may stop early.
func (inv Invocation) LineBuffered() Invocation {
	return inv.with(inv.byLine)
}

// with adds an option that is not there; none, if it is empty.
func (inv Invocation) with(option string) Invocation {
	if option == "" || slices.Contains(inv.Argv, option) {
		return inv
	}
	inv.Argv = slices.Insert(slices.Clone(inv.Argv), inv.head, option)
	return inv
}

// All returns the table, sorted by name.
func All() []Program { return slices.Clone(table) }

// Find returns the program of that exact name.
func Find(name string) (Program, bool) {
	i, ok := slices.BinarySearchFunc(table, name, func(p Program, name string) int {
		return strings.Compare(p.Name, name)
	})
	if !ok {
		return Program{}, false
	}
	return table[i], true
}

// Parse checks a command's arguments and returns them in canonical form. It runs nothing, and equal arguments give
// equal results. Parsing a canonical argv (without its first element) gives that argv again. inputs are the names of
// the inputs that there are besides the standard input; one that is not read is a mistake too. The error is a
// *stages.Error, DISALLOWED_COMMAND or DISALLOWED_ARGUMENT.
func Parse(name string, args []string, inputs ...string) (Invocation, error) {
	return ParseGiven(name, args, Given{Inputs: inputs})
}

// ParseGiven is [Parse] where a command may name files too.
func ParseGiven(name string, args []string, there Given) (Invocation, error) {
	p, ok := Find(name)
	if !ok || p.FilesOnly && !there.Files {
		return Invocation{}, unknownCommand(name, args)
	}
	if err := withinBounds(p.Name, args); err != nil {
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

// parse reads args by p's grammar and writes them anew.
func (p Program) parse(args []string, there Given) (Invocation, *stages.Error) {
	g := p.grammar()
	parsed, err := g.read(p.Name, args)
	if err != nil {
		return Invocation{}, err
	}
	// A cluster of letters counts as the options that it is written out as.
	if len(parsed.words) > maxArgs {
		return Invocation{}, tooMany(p.Name, len(parsed.words))
	}
	first := p.Bin
	if first == "" {
		first = p.Name
	}
	parsed.files = there.Files
	if parsed.has("version") {
		return Invocation{Argv: []string{first, "--version"}, Traits: stages.Traits{Replayable: true}}, nil
	}
	inv := Invocation{byLine: g.byLine, dry: g.dry, head: 1 + len(g.inject), ScriptAt: parsed.scriptAt()}
	if g.arrange != nil {
		if err := g.arrange(parsed, &inv); err != nil {
			return Invocation{}, err
		}
	}
	if inv.Inputs, err = parsed.inputs(there.Inputs); err != nil {
		return Invocation{}, err
	}
	if inv.Argv == nil {
		inv.Argv = g.argv(first, parsed)
	}
	if inv.Files = parsed.named(); inv.Files != nil {
		if inv.Inputs != nil {
			return Invocation{}, mixed(p.Name)
		}
		without := *parsed
		without.words = slices.Clone(parsed.words)
		without.dropFiles()
		inv.bare = g.argv(first, &without)
	}
	inv.Traits = g.traits(parsed, inv)
	if g.part != nil && inv.Inputs == nil && inv.Files == nil {
		inv.Part = g.part(parsed)
	}
	inv.EndLine = inv.Files == nil && g.ends != nil && g.ends(parsed)
	inv.tries = g.tries != nil && len(inv.Inputs) == 0 && g.tries(parsed)
	return inv, nil
}

// traits are what the options tell of what the program does with its data.
func (g *grammar) traits(p *parsed, inv Invocation) stages.Traits {
	says := func(f func(*parsed) bool) bool { return f != nil && f(p) }
	h := stages.Traits{
		StopsEarly: says(g.stops),
		Blocking:   says(g.gathers),
		Replayable: inv.Files == nil && !says(g.varies), // the files may be others by then
		MapsLines:  inv.Inputs == nil && inv.Files == nil && says(g.maps),
		KeepsKind:  inv.Files == nil && g.keeps.only(p),
		Values:     says(g.values),
	}
	if g.note != nil {
		h.Note = g.note(p)
	}
	return h
}
