package pipelines

import (
	"context"
	"sync"

	"github.com/mcsh-dev/mcsh/stages"
)

// An offer is the tools of one plan: those of others, and the saved pipelines.
type offer struct {
	stages.Tools // of others
	set          *Set
	deps         stages.Deps // of the plan; its Tools are those of others
	viewer       Viewer
	depth        int // pipelines around the plan

	mu    sync.Mutex
	found map[string]*Tool // guarded by mu: a run calls one version of each, even if the files change
}

// Offer returns the tools for a plan of a viewer: those of deps, and the saved pipelines. The plans of these may use what deps
// has.
func (s *Set) Offer(deps stages.Deps, v Viewer) stages.Tools { return s.forPlan(deps, v) }

func (s *Set) forPlan(deps stages.Deps, v Viewer) *offer {
	deps.Runs, deps.Values, deps.CheckOnly = nil, nil, false
	return &offer{Tools: deps.Tools, set: s, deps: deps, viewer: v, found: map[string]*Tool{}}
}

// Tool implements [stages.Tools].
func (o *offer) Tool(ctx context.Context, server, name string) (*stages.Tool, error) {
	if server != Server {
		if o.Tools == nil {
			return nil, stages.Errorf(stages.UnknownServer, "the saved pipelines are tools of the server "+Server, "there is no server %q", server)
		}
		return o.Tools.Tool(ctx, server, name)
	}
	t, err := o.find(ctx, name)
	if err != nil {
		return nil, err
	}
	info := t.Info
	info.Name = name
	return &info, nil
}

// find returns a pipeline that can be called.
func (o *offer) find(ctx context.Context, name string) (*Tool, error) {
	if most := o.deps.Limits.WithDefaults().Nesting; o.depth >= most {
		return nil, stages.OverLimit("nesting", "call fewer of them within each other", "saved pipelines call each other deeper than %d", most)
	}
	o.mu.Lock()
	t := o.found[name]
	o.mu.Unlock()
	if t != nil {
		return t, nil
	}
	t, err := o.set.Find(ctx, name, o.viewer)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	o.found[name] = t
	o.mu.Unlock()
	if t.Broken == nil {
		return t, nil
	}
	e := *t.Broken.(*stages.Error)
	e.Msg = "the saved pipeline " + name + " cannot be called: " + e.Msg
	return nil, &e
}

// CallTool implements [stages.Tools].
func (o *offer) CallTool(ctx context.Context, call stages.Call) (stages.Result, error) {
	if call.Server != Server {
		return o.Tools.CallTool(ctx, call)
	}
	t, err := o.find(ctx, call.Name)
	if err != nil {
		return stages.Result{}, err
	}
	p, errs, err := o.compile(ctx, t, call.Args, o.deps)
	switch {
	case err != nil:
		return stages.Result{}, err
	case len(errs) > 0:
		return stages.Result{}, errs[0].Within(call)
	case call.Run == nil:
		return stages.Result{}, stages.Errorf(stages.Denied, "call it in a pipeline", "a saved pipeline can be called only from a pipeline")
	case call.Reading && p.Changes():
		return stages.Result{}, stages.Errorf(stages.Denied, "send the plan again", "%s/%s now may change something; it only read when the plan was checked", Server, call.Name)
	}
	return p.RunWithin(ctx, call)
}

// Compile makes the plan of a call of a tool, as a pipeline of its own. The mistakes are those of the plan with the values;
// err is one of the values themselves. Both are of stages.
func (s *Set) Compile(ctx context.Context, t *Tool, args []byte, deps stages.Deps, v Viewer) (*stages.Pipeline, []*stages.Error, error) {
	if t.Broken != nil {
		return nil, nil, t.Broken
	}
	return s.forPlan(deps, v).compile(ctx, t, args, deps)
}

// compile makes the plan of a call with deps; what it calls is offered one level deeper.
func (o *offer) compile(ctx context.Context, t *Tool, args []byte, deps stages.Deps) (*stages.Pipeline, []*stages.Error, error) {
	values, err := t.Definition.Values(ctx, args)
	if err != nil {
		return nil, nil, err
	}
	plan, err := t.Definition.Fill(values)
	if err != nil {
		return nil, nil, err
	}
	inner := o.set.forPlan(o.deps, o.viewer)
	inner.depth = o.depth + 1
	deps.Tools, deps.Values = inner, plan.Values
	p, errs := stages.Compile(ctx, plan.Stages, deps)
	return p, errs, nil
}
