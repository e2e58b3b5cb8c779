package programs

import "github.com/mcsh-dev/mcsh/stages"

// arranger is the type of a grammar's arrange.
type arranger = func(p *parsed, inv *Invocation) *stages.Error

// stdinOnly is for programs that read their input, or files in its place. Without files "-" is left out.
func stdinOnly(p *parsed, inv *Invocation) *stages.Error {
	if err := dashesOnly(p, inv); err != nil || p.named() != nil {
		return err
	}
	p.drop(func(word) bool { return true })
	return nil
}

// scriptFirst is for programs whose first operand is a script unless an option gave one, or a named input does: it
// becomes that option.
func scriptFirst(option, what, example string) arranger {
	return func(p *parsed, inv *Invocation) *stages.Error {
		if !p.has(option) && !p.has("file") {
			i := -1
			for j, w := range p.words {
				if w.opt == nil {
					i = j
					break
				}
			}
			if i < 0 {
				return refuse(-1, "for example "+example, "%s: the %s is missing", p.name, what)
			}
			p.words[i].opt, p.words[i].has = p.grammar.long(option), true
		}
		return stdinOnly(p, inv)
	}
}

// quotedScript refuses a script that still wears the quotes that a shell would have taken off.
func quotedScript(p *parsed, w word) *stages.Error {
	s := w.value
	if len(s) < 2 || s[0] != '\'' || s[len(s)-1] != '\'' {
		return nil
	}
	return refuse(w.at, "write "+jsonText(s[1:len(s)-1]),
		"%s: %s is quoted for a shell, but no shell reads it", p.name, quote(s))
}
