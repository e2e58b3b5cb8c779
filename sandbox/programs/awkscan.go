package programs

import (
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// The mistakes of awk programs, and what to do instead.
var (
	awkPrints = &problem{
		"a redirection writes to a file, and a command writes only to the next stage",
		`leave the redirection out: what is printed goes to the next stage by itself; a comparison needs parentheses: print (a > b)`,
	}
	awkPipes = &problem{
		"a pipe runs another program, and commands cannot",
		"print what the other program is to get, and make it the next stage",
	}
	awkReads = &problem{
		"getline < reads a file, and a command sees nothing but what the stage before it wrote",
		"getline without < reads the next line of the input; a comparison needs parentheses: (getline line) < 0",
	}
	awkRuns = &problem{
		"system() runs another program, and commands cannot",
		"print what the other program is to get, and make it the next stage",
	}
)

// awkFunctions are those that gawk has, up to version 5.3.
var awkFunctions = strings.Fields(`adump and asort asorti atan2 bindtextdomain close compl cos dcgettext dcngettext exp fflush gensub
	gsub index int intdiv intdiv0 isarray length log lshift match mkbool mktime or patsplit rand rshift sin split sprintf sqrt
	srand stopme strftime strtonum sub substr system systime tolower toupper typeof xor`)

// awkMistake finds what gawk --sandbox refuses only when it gets there: redirections, pipes and system; and calls of
// functions that there are not. It returns where, too. Its findings are certain; gawk finds the rest.
func awkMistake(source string) (wrong *problem, what string) {
	tokens, whole := awkTokens(source)
	for i, t := range tokens {
		end := -1
		switch {
		case t.kind == "|" || t.kind == "|&":
			wrong, end = awkPipes, i
		case t.kind == awkName && t.text == "system":
			wrong, end = awkRuns, i
		case t.text == "getline":
			wrong, end = awkReads, redirected(tokens, i+1)
		case t.text == "print" || t.text == "printf":
			wrong, end = awkPrints, printed(tokens, i+1)
		}
		if end >= 0 {
			return wrong, around(source, tokens, i, end)
		}
	}
	if whole {
		return unknownFunction(tokens)
	}
	return nil, ""
}

// around returns the text from a token to the one after end.
func around(source string, tokens []awkToken, from, end int) string {
	last := tokens[min(end+1, len(tokens)-1)]
	return source[tokens[from].at : last.at+len(last.text)]
}

// printed returns the index of the redirection of a print whose values begin at i, -1 if there is none. As in gawk a >
// is one outside of parentheses only. It looks no further than the
// next print, so that all calls together look at each token once.
func printed(tokens []awkToken, i int) int {
	for depth := 0; i < len(tokens); i++ {
		if t := tokens[i].text; t == "print" || t == "printf" {
			return -1
		}
		switch tokens[i].kind {
		case "(":
			depth++
		case ")":
			if depth--; depth < 0 {
				return -1
			}
		case ">", ">>":
			if depth == 0 {
				return i
			}
		case ";", "{", "}":
			return -1
		case "\n":
			if !slices.Contains([]string{",", "&&", "||"}, tokens[i-1].kind) {
				return -1
			}
		}
	}
	return -1
}

// redirected returns the index of the < of a getline, behind what it reads into, which begins at i if there is any;
// -1 if there is none, or if that is not certain.
func redirected(tokens []awkToken, i int) int {
	next := func(kind string) bool {
		if i == len(tokens) || tokens[i].kind != kind {
			return false
		}
		i++
		return true
	}
	closed := func() { // to behind the bracket that closes; no further than the next getline, for the same reason as printed
		for depth := 1; depth > 0 && i < len(tokens) && tokens[i].text != "getline"; i++ {
			switch tokens[i].kind {
			case "(", "[":
				depth++
			case ")", "]":
				depth--
			}
		}
	}
	if next("$") && !next(awkValue) && next("(") {
		closed()
	}
	if next(awkName) && next("[") {
		closed()
	}
	if next("<") {
		return i - 1
	}
	return -1
}

// unknownFunction finds the call of a function that is neither gawk's nor the program's. In a call the parenthesis
// follows the name at once.
func unknownFunction(tokens []awkToken) (*problem, string) {
	defined := map[string]bool{}
	for i, t := range tokens {
		if i > 0 && t.kind == awkName && strings.HasPrefix(tokens[i-1].text, "func") {
			defined[t.text] = true
		}
		if t.kind == "::" || t.text == "namespace" {
			return nil, "" // names that are not what they look like
		}
	}
	for i, t := range tokens {
		call := t.kind == awkName && i+1 < len(tokens) && tokens[i+1].kind == "(" && tokens[i+1].at == t.at+len(t.text)
		if !call || defined[t.text] || slices.Contains(awkFunctions, t.text) || i > 0 && tokens[i-1].kind == "@" {
			continue
		}
		return &problem{
			"there is no such function",
			"define it, function " + texts.Cut(t.text, maxShown) + "(a) { return … }; gawk has split, substr, match, gsub, tolower, sprintf, strftime …",
		}, t.text + "()"
	}
	return nil, ""
}
