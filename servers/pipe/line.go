package pipe

import (
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// The bounds of a line.
const (
	maxLine     = 64 << 10
	maxCommands = 64
	maxBrackets = 2000 // for each of which the parser may recurse, in time that grows with the square
)

// parse reads a line as a shell would and accepts one pipeline of simple commands with literal words.
func parse(line string) ([]Command, *Failure) {
	if err := plain(line); err != nil {
		return nil, err
	}
	// Bash knows more than a POSIX shell, whose words have the same meaning in what is accepted. So more is refused with
	// its name.
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	switch {
	case err != nil:
		return nil, refuse(Unparsed, "Write one pipeline of simple commands, such as tail -n 100 app.log | rg ERROR. Close all quotes.",
			"the line cannot be parsed: %s.", quoted(err.Error()))
	case len(file.Stmts) == 0:
		return nil, refuse(Unparsed, "Write a command, such as ls.", "the line is empty.")
	case len(file.Stmts) > 1:
		return nil, refuse(Unparsed, "Call the tool once for each pipeline.", "a line is one pipeline, without ; and newlines.")
	}
	calls, wrong := flatten(file.Stmts[0])
	if wrong != nil {
		return nil, wrong
	}
	commands := make([]Command, len(calls))
	for i, call := range calls {
		c := Command{Text: line[call.Pos().Offset():call.End().Offset()]}
		for j, word := range call.Args {
			text, wrong := literal(word)
			switch {
			case wrong != nil:
				return nil, wrong
			case j == 0:
				c.Name = text
			default:
				c.Args = append(c.Args, text)
			}
		}
		commands[i] = c
	}
	return commands, nil
}

// plain refuses a line that is not worth parsing, or that the parser would change.
func plain(line string) *Failure {
	switch {
	case len(line) > maxLine:
		return refuse(Oversize, "Save data with the tool write and name the file.",
			"the line has %d bytes, at most %d are allowed.", len(line), maxLine)
	case !utf8.ValidString(line):
		return refuse(Unparsed, "Write the line in UTF-8.", "the line is not UTF-8.")
	case strings.ContainsAny(line, "\x00\r"):
		return refuse(Unparsed, `Leave it out, or write an escape that the command reads, such as '\r' or '\0' for tr.`,
			"the line contains a NUL byte or a carriage return.")
	case strings.Count(line, "(")+strings.Count(line, "[")+strings.Count(line, "{")+strings.Count(line, "`") > maxBrackets:
		return refuse(Oversize, "Write a shorter script.", "the line has more than %d brackets.", maxBrackets)
	}
	return nil
}

// refusedCommand refuses a structure of the shell.
func refusedCommand(c syntax.Command) *Failure {
	what := "a compound command"
	switch c := c.(type) {
	case *syntax.BinaryCmd:
		if c.Op == syntax.PipeAll {
			return refuse(Redirect, "Use | alone: what commands say on standard error is in the error of the call.",
				"|& redirects standard error.")
		}
		return refuse(Unparsed, "Call the tool once for each pipeline. A pipeline ends with its first failing command.",
			"%s is not available.", c.Op)
	case *syntax.FuncDecl:
		what = "a function"
	case *syntax.Subshell, *syntax.Block:
		what = "a group of commands"
	case *syntax.ArithmCmd, *syntax.LetClause:
		what = "arithmetic"
	case *syntax.TestClause:
		what = "a test"
	case *syntax.TimeClause:
		return refuse(DisallowedCommand, `Leave it out: "steps" has the time of each command.`, "'time' is not allowed.")
	case *syntax.CoprocClause:
		return refuse(DisallowedCommand, "Commands of a pipeline run side by side.", "'coproc' is not allowed.")
	case *syntax.DeclClause:
		return refuse(DisallowedCommand, "There are no variables: write values into the arguments.",
			"%s is not allowed.", quoted(c.Variant.Value))
	}
	return refuse(Unparsed, "Write one pipeline of simple commands, such as tail -n 100 app.log | rg ERROR.",
		"%s is not available.", what)
}

// flatten returns the commands of a pipeline in their order.
func flatten(s *syntax.Stmt) (calls []*syntax.CallExpr, _ *Failure) {
	todo := []*syntax.Stmt{s}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if err := bare(s); err != nil {
			return nil, err
		}
		switch c := s.Cmd.(type) {
		case *syntax.BinaryCmd:
			if c.Op != syntax.Pipe {
				return nil, refusedCommand(c)
			}
			todo = append(todo, c.Y, c.X)
		case *syntax.CallExpr:
			if len(c.Assigns) > 0 {
				return nil, refuse(Unparsed, "There are no variables and no environment: write values into the arguments.",
					"an assignment is not available.")
			}
			calls = append(calls, c)
		default:
			return nil, refusedCommand(c)
		}
	}
	if len(calls) > maxCommands {
		return nil, refuse(Oversize, "Save a result with tee and go on in another call.",
			"the line has %d commands, at most %d are allowed.", len(calls), maxCommands)
	}
	return calls, nil
}

// bare refuses what a statement has besides its command.
func bare(s *syntax.Stmt) *Failure {
	switch {
	case len(s.Redirs) > 0:
		use := "Use tee FILE to write a file, and name a file as an argument to read it."
		if slices.ContainsFunc(s.Redirs, func(r *syntax.Redirect) bool { return r.Hdoc != nil || r.Op == syntax.WordHdoc }) {
			use = "Save the text with the tool write, and name the file as an argument."
		}
		return refuse(Redirect, use, "the redirection %s is not available.", s.Redirs[0].Op)
	case s.Background || s.Coprocess || s.Disown:
		return refuse(Unparsed, "Leave the & out: the call returns when the pipeline has ended.", "nothing runs in the background.")
	case s.Negated:
		return refuse(Unparsed, "Leave the ! out: use grep -v or rg -v to invert a match.", "! is not available.")
	case s.Semicolon.IsValid():
		return refuse(Unparsed, "Leave the ; out.", "a line is one pipeline, without ; and newlines.")
	case s.Cmd == nil:
		return refuse(Unparsed, "Write a command, such as ls.", "a command is missing.")
	}
	return nil
}
