package stages

import "context"

// A ListKind says where a list of stages stands; a few rules depend on it.
type ListKind int

// The kinds of lists of stages.
const (
	AtTop    ListKind = iota // the pipeline itself
	InEach                   // the stages of a for_each
	InBranch                 // a branch of a parallel stage
	InInput                  // a named input of a command, which runs once whatever is around the command
)

// Scope is what a stage knows of its surroundings while it is compiled.
type Scope struct {
	Deps
	ListKind ListKind
	Each     bool // whether the stage runs once per item, of a for_each at any depth
	Fed      bool // whether anything flows into the stage; if not, its input is empty
	Last     bool // whether its output is the output of its list

	place Place
	label Label
	depth int
	c     *compiler

	direct   bool  // what flows in is the item itself, unchanged: of the innermost for_each that tries items again
	joins    bool  // whether items come out beside their results
	distinct *bool // whether equal calls are to be made once, if a for_each around it says so
}

// mapping returns the scope of what runs once per item with the choices of o.
func (s Scope) mapping(o Mapping) Scope {
	if o.Retries > 0 {
		s.direct = true
	}
	if o.Distinct != nil {
		s.distinct = o.Distinct
	}
	s.joins = o.WithItem
	return s
}

// List compiles the stages of a list that belongs to the stage of s. A branch or an input is named, a for_each's list is not.
// The steps that compiled are returned along with the error, an [errors.Join] of everything that is wrong.
func (s Scope) List(ctx context.Context, list List, kind ListKind, branch string, fed bool) ([]*Step, error) {
	inner := s
	inner.ListKind, inner.Fed, inner.depth = kind, fed, s.depth+1
	inner.Each = kind == InEach || s.Each && kind != InInput
	if kind == InInput { // it runs once, whatever becomes of the items
		inner.direct, inner.distinct, inner.joins = false, nil, false
	}
	if branch != "" {
		inner.place = Place(shown(branch)).In(s.place)
	}
	if inner.depth > s.Limits.Nesting {
		return nil, OverLimit("nesting", "flatten the pipeline, or run the inner part as a pipeline of its own",
			"stages are nested deeper than %d", s.Limits.Nesting)
	}
	return s.c.list(ctx, list, inner)
}
