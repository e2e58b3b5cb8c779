package shell

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// check says why a line may not run. It accepts a part of the language, in which the parser and all shells see the same
// commands: a line with anything else is refused.
func (r *rules) check(line string) error {
	if err := checkText(line); err != nil {
		return err
	}
	for _, dialect := range r.dialects {
		file, err := syntax.NewParser(syntax.Variant(dialect)).Parse(shallow{strings.NewReader(line)}, "")
		if err != nil {
			return fmt.Errorf("cannot be parsed: %s", texts.Cut(err.Error(), 200))
		}
		c := checker{rules: r, continued: strings.Contains(line, "\\\n")}
		syntax.Walk(file, c.visit)
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

// checkText refuses characters that shells and the parser may understand differently.
func checkText(line string) error {
	if !utf8.ValidString(line) {
		return errors.New("the line is not UTF-8")
	}
	for _, c := range line {
		if c < ' ' && c != '\t' && c != '\n' || c == 0x7f {
			return fmt.Errorf("the line has the control character %q", c)
		}
	}
	for part := range strings.Lines(line) {
		if strings.HasSuffix(part, "\\\n") && !joined().MatchString(part) {
			return errors.New("where a line goes on after a backslash, put a space before it, and no #")
		}
	}
	return nil
}

// joined matches lines that go on after a backslash in every shell, and in the parser.
var joined = lazy.Regexp(`^[^#]*[ \t]\\\n$`)

// maxFrames bounds the recursion of the parser.
const maxFrames = 2000

var errDeep = errors.New("the line is nested too deeply")

// shallow is a text that fails where the parser is too deep in its recursion: the parser reads a piece at a time.
type shallow struct{ io.Reader }

func (s shallow) Read(p []byte) (int, error) {
	if runtime.Callers(maxFrames, make([]uintptr, 1)) > 0 {
		return 0, errDeep
	}
	return s.Reader.Read(p)
}

// A checker walks a parsed line until the first error.
type checker struct {
	rules     *rules
	continued bool // a line ends in a backslash
	inside    int  // substitutions around the node
	err       error
}

func (c *checker) refuse(err error) bool {
	if c.err == nil {
		c.err = err
	}
	return false
}

// visit checks a node, and reports whether the nodes in it are to be visited.
func (c *checker) visit(node syntax.Node) bool {
	switch n := node.(type) {
	case nil, *syntax.File, *syntax.Comment, *syntax.BinaryCmd, *syntax.Subshell, *syntax.Block, *syntax.IfClause, *syntax.WhileClause, *syntax.CaseClause,
		*syntax.CaseItem, *syntax.TestClause, *syntax.ParenTest, *syntax.Lit:
		return c.err == nil
	case *syntax.Stmt:
		return c.must(!n.Coprocess && !n.Disown)
	case *syntax.CallExpr:
		return c.call(n)
	case *syntax.TimeClause: // behind a pipe it is a program
		return c.named("time")
	case *syntax.DeclClause:
		return c.declare(n)
	case *syntax.Assign:
		return c.need(n.Index == nil && n.Array == nil, errArray) && (n.Name == nil || c.assign(n.Name.Value))
	case *syntax.FuncDecl:
		return c.need(c.rules.listed(function), errFunction)
	case *syntax.ForClause:
		return c.must(!n.Select && !n.Braces)
	case *syntax.WordIter:
		return c.assign(n.Name.Value)
	case *syntax.Redirect:
		return c.redirect(n)
	case *syntax.Word:
		return c.need(!slices.ContainsFunc(n.Parts, func(p syntax.WordPart) bool { lit, ok := p.(*syntax.Lit); return ok && !ascii(lit.Value) }), errNotASCII)
	case *syntax.SglQuoted:
		return c.err == nil
	case *syntax.DblQuoted:
		return c.must(!n.Dollar)
	case *syntax.CmdSubst:
		return c.need(!n.Backquotes, errBackquotes) && c.must(!n.TempFile && !n.ReplyVar) && c.within(n.Stmts)
	case *syntax.ProcSubst:
		return c.within(n.Stmts)
	case *syntax.ParamExp:
		return c.expansion(n)
	case *syntax.ArithmExp:
		c.numbers(n.X)
		return false
	case *syntax.ArithmCmd, *syntax.LetClause:
		return c.refuse(errArithmetic)
	case *syntax.UnaryTest:
		return c.must(n.Op != syntax.TsVarSet && n.Op != syntax.TsRefVar)
	case *syntax.BinaryTest:
		return c.must(n.Op < syntax.TsEql || n.Op > syntax.TsGtr)
	}
	return c.refuse(errForm)
}

// must refuses the line unless a node has a form that can be checked.
func (c *checker) must(ok bool) bool { return c.need(ok, errForm) }

// need refuses the line for a reason, unless ok.
func (c *checker) need(ok bool, reason error) bool {
	if !ok {
		return c.refuse(reason)
	}
	return c.err == nil
}

func (c *checker) assign(name string) bool {
	if err := c.rules.mayAssign(name); err != nil {
		return c.refuse(err)
	}
	return c.err == nil
}

// named checks the name of a command.
func (c *checker) named(name string) bool {
	if err := c.rules.permits(name); err != nil {
		return c.refuse(err)
	}
	return c.err == nil
}

// within visits the commands of a substitution.
func (c *checker) within(list []*syntax.Stmt) bool {
	c.inside++
	defer func() { c.inside-- }()
	for _, s := range list {
		syntax.Walk(s, c.visit)
	}
	return false
}

func (c *checker) call(n *syntax.CallExpr) bool {
	if len(n.Args) == 0 {
		return true
	}
	name, ok := literal(n.Args[0])
	if !ok {
		return c.refuse(errors.New("the name of a command must be plain text"))
	}
	if !c.named(name) {
		return false
	}
	if check := argumentChecks[name]; check != nil && !check(c, n.Args[1:]) {
		return c.refuse(fmt.Errorf("these arguments of %s cannot be checked: want plain names, and quotes around what is expanded", name))
	}
	return true
}

// declare checks export and readonly, and others like them that the operator lists.
func (c *checker) declare(n *syntax.DeclClause) bool {
	name := n.Variant.Value
	return c.named(name) && c.must(argumentChecks[name] == nil || !slices.ContainsFunc(n.Args, func(a *syntax.Assign) bool { return a.Name == nil }))
}

func (c *checker) redirect(r *syntax.Redirect) bool {
	if !c.must(r.N == nil || len(r.N.Value) == 1 && strings.Trim(r.N.Value, "0123456789") == "") { // dash runs a command 12
		return false
	}
	switch r.Op {
	case syntax.DplIn, syntax.DplOut: // bash evaluates what is not a number
		text, ok := literal(r.Word)
		return c.must(ok && descriptor().MatchString(text))
	case syntax.Hdoc, syntax.DashHdoc:
		return c.heredoc(r)
	}
	if connects().MatchString(beginning(r.Word)) {
		return c.refuse(errors.New("a redirection of /dev/tcp or /dev/udp opens a connection"))
	}
	return true
}

// connects matches the files for which bash opens connections.
var connects = lazy.Regexp(`^/dev/(?:tcp|udp)/`)

// beginning returns the plain text at the beginning of a word.
func beginning(w *syntax.Word) string {
	for n := len(w.Parts); n > 0; n-- {
		if text, ok := literal(&syntax.Word{Parts: w.Parts[:n]}); ok {
			return text
		}
	}
	return ""
}

// descriptor matches what may follow ">&" and "<&".
var descriptor = lazy.Regexp(`^(?:[0-9]+-?|-)$`)

// heredocWord matches the words that end here-documents in all shells.
var heredocWord = lazy.Regexp(`^\w+$`)

func (c *checker) heredoc(r *syntax.Redirect) bool {
	end, _ := literal(r.Word)
	lit, unquoted := r.Word.Parts[0].(*syntax.Lit)
	if len(r.Word.Parts) != 1 || !heredocWord().MatchString(end) || unquoted && lit.Value != end || c.inside > 0 || c.continued {
		return c.refuse(errors.New("a here-document must end with a plain word, outside of substitutions and without backslashes at ends of lines"))
	}
	if r.Hdoc != nil {
		for _, part := range r.Hdoc.Parts {
			if _, text := part.(*syntax.Lit); !text && part.Pos().Line() != part.End().Line() {
				return c.refuse(errors.New("an expansion in a here-document must end in its line: shells look for the end of the document in it"))
			}
			syntax.Walk(part, c.visit)
		}
	}
	return false
}

// expansion checks the expansion of a variable. Shells disagree on quotes in it, and bash evaluates indexes and prompts.
func (c *checker) expansion(p *syntax.ParamExp) bool {
	ok := p.Param != nil && !p.Excl && !p.Width && !p.IsSet && p.Flags == nil && p.NestedParam == nil && p.Index == nil && len(p.Modifiers) == 0 && p.Names == 0
	if p.Slice != nil {
		ok = ok && c.numbers(p.Slice.Offset, p.Slice.Length)
	}
	if p.Repl != nil {
		ok = ok && plain(p.Repl.Orig) && plain(p.Repl.With)
	}
	if p.Exp != nil {
		ok = ok && p.Exp.Op != syntax.OtherParamOps && plain(p.Exp.Word)
	}
	if !c.must(ok) {
		return false
	}
	if p.Exp != nil && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull) {
		c.assign(p.Param.Value)
	}
	return false
}

// numbers refuses arithmetic with anything but numbers: bash evaluates the value of a variable, and runs substitutions in it.
func (c *checker) numbers(all ...syntax.ArithmExpr) bool {
	for _, x := range all {
		if x == nil {
			continue
		}
		syntax.Walk(x, func(node syntax.Node) bool {
			switch n := node.(type) {
			case nil, *syntax.BinaryArithm, *syntax.UnaryArithm, *syntax.ParenArithm:
				return c.err == nil
			case *syntax.Word:
				text, ok := literal(n)
				c.need(ok && strings.Trim(text, "0123456789") == "", errArithmetic)
				return false
			}
			return c.refuse(errArithmetic)
		})
	}
	return c.err == nil
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c >= utf8.RuneSelf })
}

// plainText matches words in which no shell finds a quote or an expansion.
var plainText = lazy.Regexp(`^[A-Za-z0-9 _./:,@%+=*?#^-]*$`)

func plain(w *syntax.Word) bool {
	return w == nil || !slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		lit, ok := p.(*syntax.Lit)
		return !ok || !plainText().MatchString(lit.Value)
	})
}

// Text that is one word in every shell: unquoted, with backslashes, and in double quotes.
var (
	unquoted = lazy.Regexp(`^(?:[A-Za-z0-9_./+:@%,=!\]-]|\\[ -~])*$`)
	quoted   = lazy.Regexp("^(?:[^\\\\$`]|\\\\[^\\\\$`\"\n])*$")
	escape   = lazy.Regexp(`\\(.)`)
)

// literal returns the text of a word without expansions, globs and braces.
func literal(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if p.Value != "[" && !unquoted().MatchString(p.Value) {
				return "", false
			}
			b.WriteString(escape().ReplaceAllString(p.Value, "$1"))
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || p.Dollar || !quoted().MatchString(lit.Value) {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}
