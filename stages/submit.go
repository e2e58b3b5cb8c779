package stages

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"iter"
	"slices"
)

// Submit stores the pipeline as a run that has stopped before its first stage, so that other processes find it and continue it, and
// returns its id. A pipeline that continues a run is that run.
func (p *Pipeline) Submit(ctx context.Context) (run string, err error) {
	if p.resumed != nil {
		return p.resumed.id, nil
	}
	rec, end := newRecord(p, false, false)
	err = p.inheritEffects(ctx, rec)
	rec.writePlan()
	end()
	if err != nil {
		return "", err
	}
	if err := rec.runs.Publish(ctx, rec.id); err != nil {
		return "", storeError(err)
	}
	return rec.id, nil
}

// inheritEffects gives a run that is submitted the effects of the runs that it begins with: others continue it without looking at those.
func (p *Pipeline) inheritEffects(ctx context.Context, rec *record) error {
	r := &Run{deps: p.deps, record: rec, memory: p.deps.Memory.Lease()}
	defer r.memory.Close()
	l, err := newEffectLog(ctx, r, p.steps, nil)
	l.close()
	return err
}

// A Beginning is what a pipeline asks of the run that it begins with.
type Beginning struct {
	Run    string // empty: it begins otherwise
	Resume bool
	Alone  bool // it asks for nothing but the output of that run
}

// BeginsWith returns the run that a pipeline begins with.
func BeginsWith(pipeline []byte) Beginning {
	list, err := parseList(pipeline)
	if err != nil || len(list) == 0 || !begins(list[0]) {
		return Beginning{}
	}
	var from FromStage
	if json.Unmarshal(list[0], &from) != nil {
		return Beginning{}
	}
	return Beginning{from.Run, from.Resume, len(list) == 1 && from.Stage == 0 && !from.Resume}
}

// Marks say what a pipeline relies on outside of it, by its stages: the tools that it calls, their parameters and effects.
type Marks map[Place]string

// Marks returns the marks of the pipeline.
func (p *Pipeline) Marks() Marks {
	marks := Marks{}
	for s := range allSteps(p.steps) {
		if s.tool != nil {
			marks[s.place] = s.tool.mark()
		}
	}
	return marks
}

// marksOf yields the marks of steps and those within them.
func marksOf(steps []*Step) iter.Seq[string] {
	return func(yield func(string) bool) {
		for s := range allSteps(steps) {
			if s.tool != nil && !yield(s.tool.mark()) {
				return
			}
		}
	}
}

// mark is a hash of what a call relies on.
func (c *toolCall) mark() string {
	t := c.info
	text, err := json.Marshal([]any{t.Server, t.Name, t.ReadOnly, t.Idempotent, t.Signature, t.Input.Fixed, t.Input.Required, t.Input.Closed})
	if err != nil {
		panic(err) // it has only strings and booleans
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Agree returns an error if a stage relies on something else here than where the marks were made.
func (p *Pipeline) Agree(there Marks) error {
	for at, mark := range p.Marks() {
		if other, known := there[at]; known && other != mark {
			i := slices.IndexFunc(p.steps, func(s *Step) bool { return s.place.top() == at.top() })
			return located(disagreement(), at, p.steps[i].Label)
		}
	}
	return nil
}

func disagreement() *Error {
	return Errorf(Internal, "give all gateways and workers the same configuration and version",
		"a tool has other parameters or effects here than where the pipeline was checked")
}

// A storeFailure is the failure of a store that gateways share.
type storeFailure struct{ error }

func (f storeFailure) Unwrap() error { return f.error }

// StoreFailure makes an error one of the store that gateways share.
func StoreFailure(err error) error { return storeFailure{err} }

// Unkept reports whether a run failed because the store that gateways share could not be used: then it can go on later.
func Unkept(err error) bool {
	_, ok := errors.AsType[storeFailure](err)
	return ok
}
