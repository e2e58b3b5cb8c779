package upstream

import "github.com/mcsh-dev/mcsh/internal/globs"

// filters are those of a server's resources and prompts.
type filters struct{ resources, prompts filter }

func newFilters(s Server) filters {
	few := len(s.Allow) > 0
	named := few || len(s.With) > 0 // prompts do not get the arguments of the operator
	return filters{newFilter(s.Resources, few), newFilter(s.Prompts, named)}
}

// A filter is a compiled [Filter].
type filter struct {
	allow, deny globs.List
	few         bool // what allow does not name is refused, even if it is empty
}

func newFilter(f Filter, few bool) filter {
	return filter{globs.Compile(f.Allow...), globs.Compile(f.Deny...), few || len(f.Allow) > 0}
}

// refusal says why an offer may not be used, or is empty.
func (f filters) refusal(kind Kind, key string) string {
	one, where := f.resources, "resources"
	if kind == Prompts {
		one, where = f.prompts, "prompts"
	}
	switch {
	case one.deny.Match(key):
		return "the operator denies it"
	case one.few && !one.allow.Match(key):
		return "it is not among the " + where + " that the operator allows"
	}
	return ""
}
