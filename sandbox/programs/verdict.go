package programs

import (
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// A Verdict is the result of checking a script: the mistake in it, or what the script tells about the command. It comes
// out of the jail, so its reader trusts it no more than any other output of a command.
type Verdict struct {
	Mistake string `json:",omitempty"` // lower case, no final period; empty if the script is accepted
	Hint    string `json:",omitempty"` // one concrete step, if the reader of the script knows one

	StopsEarly bool `json:",omitempty"` // see [stages.Traits]
	MapsLines  bool `json:",omitempty"` // likewise
	Varies     bool `json:",omitempty"` // equal input may give different output
}

// maxVerdictText bounds each text of a verdict, in bytes.
const maxVerdictText = 2 << 10

// bounded cuts the texts of a verdict to what an error carries.
func (v Verdict) bounded() Verdict {
	v.Mistake, v.Hint = texts.Cut(v.Mistake, maxVerdictText), texts.Cut(v.Hint, maxVerdictText)
	return v
}

// verdictOf makes the verdict of a refusal.
func verdictOf(err *stages.Error) Verdict { return Verdict{Mistake: err.Msg, Hint: err.Hint} }

// HasScript reports whether the arguments of p hold a script that only [Program.Verdict] reads.
func (p Program) HasScript() bool { return p.check != nil || p.Ready != nil }

// Verdict checks the script in a canonical argv, given without its first element. It takes memory and time that only
// the limits of its process bound: it is meant for a jailed process.
func (p Program) Verdict(args []string) Verdict {
	if p.Ready != nil {
		_, v := p.Ready(args, nil)
		return v
	}
	parsed, err := p.grammar().read(p.Name, args)
	if err != nil {
		return verdictOf(err).bounded()
	}
	return p.check(parsed).bounded()
}

// Judge applies a verdict to the invocation that args were parsed to: it returns what the command does with its data, or
// a *stages.Error, DISALLOWED_ARGUMENT.
func (inv Invocation) Judge(name string, args []string, v Verdict) (stages.Traits, error) {
	v = v.bounded()
	h := inv.Traits
	if v.Mistake == "" {
		h.StopsEarly = h.StopsEarly || v.StopsEarly
		h.MapsLines = h.MapsLines || v.MapsLines && inv.Inputs == nil && inv.Files == nil
		h.Replayable = h.Replayable && !v.Varies
		return h, nil
	}
	hint := v.Hint
	if hint == "" || strings.HasPrefix(hint, "did you mean") { // the table may know better
		hint = Hint(name, Complaint{Args: args, Message: v.Mistake + "\n" + v.Hint})
	}
	return h, refuse(inv.ScriptAt, hint, "%s: %s", name, v.Mistake)
}
