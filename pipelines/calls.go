package pipelines

import (
	"context"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/stages"
)

// maxEarlier bounds the earlier versions that a pipeline calls, also through others: each is read and parsed for a check.
const maxEarlier = 50

// calledBy returns the pipelines that one calls, through however many others, by the names in their plans.
func (s *Set) calledBy(ctx context.Context, p Saved) (called map[string]Saved, err error) {
	current := map[string]Saved{}
	list, _ := s.store.List(ctx)
	for _, one := range append(list, p) { // p need not be saved
		current[one.Name] = one
	}
	called = map[string]Saved{}
	for earlier, left := 0, slices.Clone(p.Definition.calls); len(left) > 0; left = left[1:] {
		call := left[0]
		if _, known := called[call]; known {
			continue
		}
		one := current[call]
		if strings.Contains(call, "@") {
			if earlier++; earlier > maxEarlier {
				return called, stages.Errorf(stages.InvalidPipeline, "", "it calls more than %d earlier versions, also through others", maxEarlier)
			}
			one, _ = s.store.Get(ctx, call, Everybody) // the check of the plan says why there is none
		}
		called[call] = one
		if one.Definition != nil {
			left = append(left, one.Definition.calls...)
		}
	}
	return called, nil
}

// serversOf returns the servers whose tools are called by a pipeline or by those that it calls; sorted.
func serversOf(p Saved, called map[string]Saved) []string {
	servers := slices.Clone(p.Definition.servers)
	for _, one := range called {
		if one.Definition != nil {
			servers = append(servers, one.Definition.servers...)
		}
	}
	return once(servers)
}

// circle refuses a pipeline that calls itself through those that it calls, or is nested deeper than most.
func circle(p Saved, called map[string]Saved, most int) error {
	seen := map[string]int{} // how deep each call was found
	var visit func(call string, p Saved, path []string) error
	visit = func(call string, p Saved, path []string) error {
		path = append(path, p.Name)
		switch {
		case len(path) > most:
			return stages.OverLimit("nesting", "", "saved pipelines call each other deeper than %d: %s", most, strings.Join(path, " calls "))
		case p.Definition == nil || seen[call] >= len(path):
			return nil
		}
		seen[call] = len(path)
		for _, call := range p.Definition.calls {
			name, _, _ := strings.Cut(call, "@")
			if at := slices.Index(path, name); at >= 0 {
				return stages.Errorf(stages.InvalidPipeline, "", "the saved pipeline calls itself: %s", strings.Join(append(path[at:], name), " calls "))
			}
			if err := visit(call, called[call], slices.Clone(path)); err != nil {
				return err
			}
		}
		return nil
	}
	return visit(p.Name, p, nil)
}
