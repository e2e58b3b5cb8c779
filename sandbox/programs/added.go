package programs

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// The bounds of programs that an operator adds.
const (
	maxAdded        = 32
	maxAddedOptions = 64
	maxAddedPath    = 256
	maxSummary      = 200
)

// An Addition describes a program that an operator adds to the table. The tags are for the text that a worker reads.
type Addition struct {
	Name     string
	Path     string           // of its file, where commands run
	Summary  string           `json:",omitempty"` // what it does, in a few words
	Options  []AdditionOption `json:",omitempty"`
	Operands string           `json:",omitempty"` // what it takes besides options: none, text or files; empty: none
	Threads  bool             `json:",omitempty"` // it cannot do without threads
}

// An AdditionOption is an option of an [Addition].
type AdditionOption struct {
	Long  string // without dashes; empty: it has none
	Short string // a letter or a digit; empty: it has none
	Takes string // nothing, number or text; empty: nothing
}

// Added are the programs that an operator has added to the table.
type Added []Program

// addedOperands are the kinds of operands. Each has the program's arranger.
var addedOperands = map[string]arranger{"": noOperands, "none": noOperands, "text": nil, "files": stdinOnly}

// addedValues are what an option can take.
var addedValues = map[string]struct {
	takes takes
	check check
}{
	"": {nothing, nil}, "nothing": {nothing, nil}, "text": {one, nil},
	"number": {one, like(`-?[0-9]{1,15}(\.[0-9]{1,15})?`, "give a number such as 10 or 0.5")},
}

// reserved are names of commands that are not in the table: tee is a stage, and the server pipe has cd and pwd.
var reserved = []string{"tee", "cd", "pwd"}

// The forms of names and paths. They need no quotes anywhere.
var (
	addedName  = lazy.Regexp(`\A[a-z][a-z0-9_-]{0,31}\z`)
	addedLong  = lazy.Regexp(`\A[A-Za-z0-9][A-Za-z0-9_-]{0,31}\z`)
	addedShort = lazy.Regexp(`\A[A-Za-z0-9]\z`)
	addedPath  = lazy.Regexp(`\A(/[A-Za-z0-9._+@-]+)+\z`)
)

// Add makes rows of the table. Its error names the program and what is wrong with it.
func Add(all []Addition) (Added, error) {
	if len(all) > maxAdded {
		return nil, fmt.Errorf("%d commands are added, at most %d are allowed", len(all), maxAdded)
	}
	var added Added
	for _, a := range all {
		p, err := a.row()
		if err == nil && slices.ContainsFunc(added, func(q Program) bool { return q.Name == p.Name }) {
			err = fmt.Errorf("the command is added twice")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", texts.Quote(a.Name), err)
		}
		added = append(added, p)
	}
	return added, nil
}

// row makes the row of a program. Nothing is known of its work, so its output may be another each time.
func (a Addition) row() (Program, error) {
	arrange, known := addedOperands[a.Operands]
	switch {
	case !addedName().MatchString(a.Name):
		return Program{}, fmt.Errorf("want a name of at most 32 lower-case letters, digits, - and _, a letter first")
	case isTaken(a.Name):
		return Program{}, fmt.Errorf("there is a command of this name already; give the program another name")
	case len(a.Path) > maxAddedPath || !addedPath().MatchString(a.Path) || path.Clean(a.Path) != a.Path:
		return Program{}, fmt.Errorf(`path: want an absolute path of at most %d letters, digits and any of "._+@-", `+
			`without "." and ".." as parts, such as /usr/local/bin/tool, got %s`, maxAddedPath, texts.Quote(a.Path))
	case len(a.Summary) > maxSummary || !utf8.ValidString(a.Summary) || strings.ContainsFunc(a.Summary, unicode.IsControl):
		return Program{}, fmt.Errorf("summary: want one line of at most %d bytes", maxSummary)
	case !known:
		return Program{}, fmt.Errorf("operands: want none, text or files, got %s", texts.Quote(a.Operands))
	case len(a.Options) > maxAddedOptions:
		return Program{}, fmt.Errorf("options: there are %d, at most %d are allowed", len(a.Options), maxAddedOptions)
	}
	p := Program{
		Name: a.Name, Summary: strings.TrimSuffix(a.Summary, "."), Bin: a.Path, Threads: a.Threads, Asks: a.Operands == "files",
		arrange: arrange, varies: always, exact: true,
	}
	for i, o := range a.Options {
		option, err := o.row(&p)
		if err != nil {
			return Program{}, fmt.Errorf("options[%d]: %w", i, err)
		}
		p.options = append(p.options, option)
	}
	p.Notes = "Added by the operator. " + p.usage(a.Operands)
	return p, nil
}

func isTaken(name string) bool {
	_, known := Find(name)
	return known || slices.Contains(reserved, name) ||
		slices.ContainsFunc(Internal(), func(p Program) bool { return p.Name == name })
}

// row makes the row of an option of p, which has those before it.
func (o AdditionOption) row(p *Program) (option, error) {
	value, known := addedValues[o.Takes]
	switch {
	case o.Long == "" && o.Short == "":
		return option{}, fmt.Errorf(`want "long", "short" or both`)
	case o.Long != "" && !addedLong().MatchString(o.Long):
		return option{}, fmt.Errorf("long: want at most 32 letters, digits, - and _, without the dashes before them, got %s",
			texts.Quote(o.Long))
	case o.Short != "" && !addedShort().MatchString(o.Short):
		return option{}, fmt.Errorf("short: want one letter or digit, without the dash before it, got %s", texts.Quote(o.Short))
	case !known:
		return option{}, fmt.Errorf("takes: want nothing, number or text, got %s", texts.Quote(o.Takes))
	case o.Long != "" && p.long(o.Long) != nil:
		return option{}, fmt.Errorf("--%s is there already; every command has --version and refuses --help", o.Long)
	case o.Short != "" && p.short(o.Short[0]) != nil:
		return option{}, fmt.Errorf("-%s is there already", o.Short)
	}
	row := option{long: o.Long, takes: value.takes, check: value.check}
	if o.Short != "" {
		row.short = o.Short[0]
	}
	return row, nil
}

// usage names options and operands: no agent knows them.
func (p *Program) usage(operands string) string {
	var names []string
	for i := range p.options {
		names = append(names, p.spellings(&p.options[i]))
	}
	text := "Options: " + strings.Join(names, "; ")
	if names == nil {
		text = "No options"
	}
	return text + map[string]string{"text": ". Operands are text", "files": ". Operands are files"}[operands]
}

// noOperands is for programs that take options alone.
func noOperands(p *parsed, _ *Invocation) *stages.Error {
	ops := p.operands()
	if len(ops) == 0 {
		return nil
	}
	if w := ops[0]; shellWords[w.value] != "" || isInputName(w.value) {
		return p.noFile(w)
	}
	return refuse(ops[0].at, "leave it out: "+useStdin, "%s takes options alone, not %s", p.Name, texts.Quote(ops[0].value))
}

// Text writes what a worker needs to know of the programs, for [ReadAdded]; empty: there are none.
func (a Added) Text() string {
	if len(a) == 0 {
		return ""
	}
	var all []Addition
	for _, p := range a {
		short := Addition{Name: p.Name, Path: p.Bin, Threads: p.Threads}
		if p.Asks {
			short.Operands = "files"
		}
		all = append(all, short)
	}
	return texts.JSON(all)
}

// ReadAdded reads a Text. The programs have no options: a worker gets arguments that are checked.
func ReadAdded(text string) (Added, error) {
	if text == "" {
		return nil, nil
	}
	var all []Addition
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("reading the added commands: %w", err)
	}
	return Add(all)
}

// Find returns the program of that exact name, of the table or an added one.
func (a Added) Find(name string) (Program, bool) {
	if at := slices.IndexFunc(a, func(p Program) bool { return p.Name == name }); at >= 0 {
		return a[at], true
	}
	return Find(name)
}

// All returns the table and the added programs.
func (a Added) All() []Program { return slices.Concat(All(), a) }

// PageOf returns the page of the program of that name. The error is a *stages.Error, DISALLOWED_COMMAND, with the nearest names.
func (a Added) PageOf(name string) (Page, error) {
	p, ok := a.Find(name)
	if !ok {
		return Page{}, a.unknownCommand(name, nil)
	}
	return p.Page(), nil
}

// Names are those of the added programs.
func (a Added) Names() (names []string) {
	for _, p := range a {
		names = append(names, p.Name)
	}
	return names
}

// unknownCommand explains why name is not a command, and what to write instead: an added one may be meant.
func (a Added) unknownCommand(name string, args []string) *stages.Error {
	words := strings.Fields(name[:min(len(name), maxArgBytes)])
	if len(words) == 0 {
		return unknownCommand(name, args)
	}
	meant := strings.ToLower(path.Base(words[0]))
	if slices.Contains(a.Names(), meant) {
		return disallowed("write "+texts.JSON(meant)+`, and its arguments in "args"`,
			"command %s is not written plainly: a command is a name in lower case, without a path and arguments", texts.Quote(name))
	}
	err := unknownCommand(name, args)
	if near := nearest.Name(meant, a.Names()); near != "" {
		err.Hint = fmt.Sprintf("did you mean %s? %s", near, err.Hint)
	}
	return err
}
