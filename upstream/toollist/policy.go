package toollist

import "github.com/mcsh-dev/mcsh/internal/globs"

// A Policy is what the operator says of the tools of one server, by the names that the server has for them.
type Policy struct {
	ReadOnly, Allow, Deny globs.List // where Allow is empty, all are allowed
	OnlyReading           bool       // refuse every tool that may change something
	Sticky                bool       // see [stages.Tool]
	Fixed                 fixed
	Overrides             map[string]Override
}

// refusal says why a tool may not be called, or is empty.
func (p Policy) refusal(name string, readOnly bool, doubt string) string {
	switch {
	case p.Deny.Match(name):
		return "the operator denies it"
	case len(p.Allow) > 0 && !p.Allow.Match(name):
		return "it is not among the tools that the operator allows"
	case p.OnlyReading && !readOnly && doubt != "":
		return "only tools that read are allowed, and this one counts as one that may change something: " + doubt
	case p.OnlyReading && !readOnly:
		return "only tools that read are allowed, and this one is not annotated read-only"
	}
	return ""
}
