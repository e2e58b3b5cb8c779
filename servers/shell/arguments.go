package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// argumentChecks are for builtins whose arguments name variables: bash evaluates such a name if it has an index.
var argumentChecks = map[string]func(c *checker, args []*syntax.Word) bool{
	"export": names, "readonly": names, "read": names, "unset": names, "getopts": names, "mapfile": names, "readarray": names,
	"printf": func(_ *checker, args []*syntax.Word) bool { return len(args) == 0 || isPlain(args[0], "-") },
	"wait": func(_ *checker, args []*syntax.Word) bool {
		return all(args, func(w *syntax.Word) bool { return isPlain(w, "-") })
	},
	"set":  settings,
	"test": func(_ *checker, args []*syntax.Word) bool { return test(args) },
	"[": func(_ *checker, args []*syntax.Word) bool {
		return len(args) > 0 && isPlain(args[len(args)-1], "") && test(args[:len(args)-1])
	},
}

func all(args []*syntax.Word, ok func(*syntax.Word) bool) bool {
	return !slices.ContainsFunc(args, func(w *syntax.Word) bool { return !ok(w) })
}

// isPlain reports whether a word is plain text that does not begin with the given one; empty: any.
func isPlain(w *syntax.Word, not string) bool {
	text, ok := literal(w)
	return ok && (not == "" || !strings.HasPrefix(text, not))
}

var identifier = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*$`)

// names accepts names of variables that may be assigned, NAME=VALUE, and the option -r of read.
func names(c *checker, args []*syntax.Word) bool {
	return all(args, func(w *syntax.Word) bool {
		text, ok := literal(w)
		if !ok { // the name must be plain, and the value one word
			lit, isLit := w.Parts[0].(*syntax.Lit)
			if !isLit || !strings.ContainsRune(lit.Value, '=') || !single(w) {
				return false
			}
			text = lit.Value
		}
		name, _, _ := strings.Cut(text, "=")
		return text == "-r" || c.rules.mayAssign(name) == nil
	})
}

// setOptions are arguments of set that change no meaning of a command. With others, words after a command can be assignments.
var setOptions = lazy.Regexp(`^(?:[-+][eux]*o?|pipefail|errexit|nounset|xtrace)$`)

func settings(_ *checker, args []*syntax.Word) bool {
	return all(args, func(w *syntax.Word) bool {
		text, ok := literal(w)
		return ok && setOptions().MatchString(text)
	})
}

// comparisons are the operators of test between two operands.
var comparisons = strings.Fields("= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef")

// test accepts conditions in which no expansion can become the operator -v or -R, whose operand bash evaluates.
func test(args []*syntax.Word) bool {
	open := -1 // an argument with expansions
	for i, w := range args {
		text, ok := literal(w)
		switch {
		case ok && (text == "-v" || text == "-R"), !ok && !single(w):
			return false
		case !ok:
			open = i
		}
	}
	if open < 0 {
		return true
	}
	if text, _ := literal(args[0]); text == "!" {
		args = args[1:]
	}
	switch len(args) {
	case 1:
		return true
	case 2:
		return isPlain(args[0], "")
	case 3:
		text, _ := literal(args[1])
		return slices.Contains(comparisons, text)
	}
	return false
}

// single reports whether a word stays one word with any expansions.
func single(w *syntax.Word) bool {
	return !slices.ContainsFunc(w.Parts, func(part syntax.WordPart) bool {
		quoted, ok := part.(*syntax.DblQuoted)
		if !ok {
			_, ok := literal(&syntax.Word{Parts: []syntax.WordPart{part}})
			return !ok
		}
		return slices.ContainsFunc(quoted.Parts, func(inner syntax.WordPart) bool {
			p, ok := inner.(*syntax.ParamExp)
			return ok && (p.Param == nil || p.Param.Value == "@")
		})
	})
}
