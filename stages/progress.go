package stages

import "context"

// Progress says how far a run is.
type Progress struct {
	Items int64 // items of for_each stages that are finished
	Calls int64 // tool calls that were started

	// Place is the stage whose tool has just said how far it is, and Tool the sum over its calls; empty: no tool has.
	Place Place
	Tool  ToolProgress
	Each  bool // the stage runs once per item
}

// ToolProgress is what a tool says of how far a call is.
type ToolProgress struct {
	Done, Total float64 // Total is 0 where the tool does not know it
	Message     string  // one clean line; empty in the sum over the calls of a for_each
}

// follow returns what a call of a tool tells of its progress; nil where nobody wants to know.
func (r *Run) follow(m *Meter, each bool) func(ToolProgress) {
	if r.progress == nil {
		return nil
	}
	var last ToolProgress // of this call; guarded by m.mu
	return func(p ToolProgress) {
		m.mu.Lock()
		m.counts.Tool.Done += max(0, p.Done-last.Done)
		m.counts.Tool.Total += max(0, p.Total-last.Total)
		last.Done, last.Total = max(last.Done, p.Done), max(last.Total, p.Total)
		if !each && p.Message != "" {
			m.counts.Tool.Message = p.Message
		}
		sum := m.counts.Tool
		m.mu.Unlock()
		r.progress(Progress{Items: r.items.Load(), Calls: r.calls.Load(), Place: m.step.place, Tool: sum, Each: each})
	}
}

// stageKey is where the context of a run has [RunOptions.Stage]. It stands there and not in the run, whose types are linked
// into every program that knows this package's errors, the sandbox worker among them.
type stageKey struct{}

// watch returns a context for a link that begins, and what is told of its end.
func (l *link) watch(ctx context.Context) (context.Context, func(error)) {
	begin, _ := ctx.Value(stageKey{}).(func(context.Context, Place, string, []string) (context.Context, func(error)))
	if begin == nil {
		return ctx, func(error) {}
	}
	var commands []string
	for _, s := range l.steps {
		if c := s.own().Command; c != nil {
			commands = append(commands, c.Name)
		}
	}
	ctx, end := begin(ctx, l.steps[0].place, l.steps[0].Label.Kind, commands)
	return ctx, func(err error) {
		if echo(err) {
			err = nil
		}
		end(err)
	}
}
