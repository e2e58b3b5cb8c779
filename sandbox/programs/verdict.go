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
func verdictOf(err *stages.Error) Verdict { return Verdict{Mistake: err.Msg, Hint: err.Hint}.bounded() }

// Judge applies a verdict to the invocation that args were parsed to: it returns what the command does with its data, or
// a *stages.Error, DISALLOWED_ARGUMENT.
func (inv Invocation) Judge(name string, args []string, v Verdict) (stages.Traits, error) {
	v = v.bounded()
	h := inv.Traits
	if v.Mistake == "" {
		h.StopsEarly = h.StopsEarly || v.StopsEarly
		h.Replayable = h.Replayable && !v.Varies
		return h, nil
	}
	hint := v.Hint
	if hint == "" || strings.HasPrefix(hint, "did you mean") { // the table may know better
		hint = Hint(name, Complaint{Args: args, Message: v.Mistake + "\n" + v.Hint})
	}
	return h, refuse(inv.ScriptAt, hint, "%s: %s", name, v.Mistake)
}
