package pipe

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// refuse makes a Failure of the guard.
func refuse(reason Reason, use, format string, args ...any) *Failure {
	return &Failure{Code: Violation, Reason: reason, Detail: fmt.Sprintf(format, args...), Use: use}
}

// literal returns the text of a word that stands for itself, with its quotes removed as a POSIX shell does it. A word that a
// shell would expand is refused.
func literal(w *syntax.Word) (string, *Failure) {
	split := *w
	syntax.SplitBraces(&split)
	if slices.ContainsFunc(split.Parts, func(p syntax.WordPart) bool { _, is := p.(*syntax.BraceExp); return is }) {
		return "", refuse(DisallowedArgument, "Write the words out, or quote the braces.", "braces are not expanded.")
	}
	var b strings.Builder
	for i, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if i == 0 && strings.HasPrefix(part.Value, "~") {
				return "", refuse(PathEscape, "Name files relative to the current directory, or quote the ~.",
					"%s: there is no home directory.", quoted(part.Value))
			}
			if err := unquote(&b, part.Value); err != nil {
				return "", err
			}
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", notLiteral(part)
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			if err := doubleQuoted(&b, part); err != nil {
				return "", err
			}
		default:
			return "", notLiteral(part)
		}
	}
	return b.String(), nil
}

// unquote removes the backslashes of text outside of quotes. A backslash before a newline removes both.
func unquote(b *strings.Builder, text string) *Failure {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			switch i++; {
			case i == len(text): // at the end of the line
				b.WriteByte(c)
			case text[i] != '\n':
				b.WriteByte(text[i])
			}
		case '*', '?', '[':
			return refuse(DisallowedArgument, `Quote it if it is a pattern or a script. Names of files are found by fd -g 'GLOB' DIR, and rg searches whole directories.`,
				"%s: no shell expands %q to names of files.", quoted(text), string(c))
		default:
			b.WriteByte(c)
		}
	}
	return nil
}

// doubleQuoted removes the quotes: a backslash counts before four characters and a newline only.
func doubleQuoted(b *strings.Builder, q *syntax.DblQuoted) *Failure {
	if q.Dollar {
		return notLiteral(q)
	}
	for _, part := range q.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			return notLiteral(part)
		}
		text := lit.Value
		for i := 0; i < len(text); i++ {
			if text[i] == '\\' && i+1 < len(text) && strings.IndexByte("$`\"\\\n", text[i+1]) >= 0 {
				i++
				if text[i] == '\n' {
					continue
				}
			}
			b.WriteByte(text[i])
		}
	}
	return nil
}

// notLiteral refuses a part of a word that a shell would replace by something else.
func notLiteral(part syntax.WordPart) *Failure {
	what, use := "it", "Write the text itself between single quotes."
	switch part := part.(type) {
	case *syntax.ParamExp:
		what = "the parameter $"
		if part.Param != nil {
			what += texts.Cut(part.Param.Value, 40)
		}
		use = "There are no variables. Put scripts with $ between single quotes: awk '{print $1}'."
	case *syntax.CmdSubst:
		what, use = "the output of another command", "Use a pipe, or put the text between single quotes."
	case *syntax.ArithmExp:
		what, use = "arithmetic", "Write the result, or compute it with awk."
	case *syntax.ProcSubst:
		what, use = "the name of a pipe", "Name a file of the workspace."
	case *syntax.ExtGlob:
		what, use = "a pattern of names", "Quote it if it is a pattern. Names of files are found by fd -g 'GLOB' DIR."
	case *syntax.SglQuoted, *syntax.DblQuoted:
		what, use = "quotes after a $", "Use plain quotes, with a tab or newline itself between them; awk -F'\\t' knows a tab."
	}
	return refuse(DisallowedArgument, use, "%s is not expanded here: words are literal.", what)
}

// quoted shows a word in a message.
func quoted(text string) string {
	return "'" + texts.Cut(strings.ToValidUTF8(text, "\uFFFD"), 60) + "'"
}
