package stages

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
)

// past is a run of which outputs are kept.
type past struct {
	runs Runs
	id   string
	plan
}

// plan is what is kept of the pipeline of a run.
type plan struct {
	Fed    bool `json:"fed,omitempty"` // whether it was given input of its own, which is not kept
	Stages List `json:"stages"`
}

// findRun returns an earlier run of the caller. Another caller's run is as unknown as one that never was.
func findRun(runs Runs, id string) (past, error) {
	data, incomplete, release := runs.Open(id, planName)
	defer release()
	if data == nil && incomplete == "" {
		return past{}, fielded("run", Errorf(UnknownRun, "runs are kept for some time after their last use; run the pipeline again, without from",
			"there is no run %s", quoted(id)))
	}
	p := past{runs: runs, id: id}
	if data != nil {
		text, err := io.ReadAll(data)
		if err == nil {
			err = json.Unmarshal(text, &p.plan)
		}
		if err != nil {
			return past{}, Errorf(Internal, "run the pipeline again, without from", "what is kept of run %s cannot be read: %w", id, err)
		}
		return p, nil
	}
	return past{}, fielded("run", Errorf(UnknownRun, "run the pipeline again, without from", "run %s was not kept: %w", id, Incomplete(incomplete)))
}

// whole reports whether the output of a stage is kept, or why it is not. Before the first stage there is nothing.
func (p past) whole(stage int) (bool, string) {
	if stage == 0 {
		return !p.Fed, "the input of the run is not kept"
	}
	data, incomplete, release := p.runs.Open(p.id, outputName(stage))
	release()
	if data == nil && incomplete == "" {
		incomplete = "it is not kept by itself"
	}
	return incomplete == "", incomplete
}

// source is where the data of a from stage comes from: a stage whose output is kept, and what is run on it.
type source struct {
	past
	wanted int     // the stage whose output is wanted
	stage  int     // the stage whose output is kept
	replay []*Step // what is run on it
}

// source finds the data of a stage: its output, or that of an earlier stage, if what stands between only depends on
// its input. Where the same for_each follows, to be resumed, what stands between may also read anew: each of its items
// is compared with what it was.
func (p past) source(ctx context.Context, s Scope, stage int) (*source, error) {
	from, why := stage, ""
	for {
		whole, incomplete := p.whole(from)
		if whole {
			break
		}
		if from == stage {
			why = incomplete
		}
		if from--; from < 0 {
			return nil, p.refuse(stage, why)
		}
	}
	src := &source{past: p, wanted: stage, stage: from}
	if from == stage {
		return src, nil
	}
	var between List
	var numbers []int
	for i, raw := range p.Stages[from:stage] {
		if typeOf(raw) != "preview" { // a window: what passes it does not change
			between, numbers = append(between, raw), append(numbers, from+i+1)
		}
	}
	if stage == len(p.Stages) && typeOf(p.Stages[stage-1]) == "preview" {
		return nil, p.refuse(stage, why) // it was no window but the output
	}
	steps, err := s.List(ctx, between, InInput, "", from > 0)
	if err != nil {
		return nil, err
	}
	resumes := s.Site == AtTop && len(s.rest) > 0 && stage < len(p.Stages) && sameEach(s.rest[0], p.Stages[stage])
	for i, step := range steps {
		if !step.replays && !(resumes && step.Effect == ReadOnly) {
			return nil, p.refuse(stage, why)
		}
		if isEach(between[i]) {
			step.resume = &resumption{p, numbers[i]}
		}
	}
	src.replay = steps
	return src, nil
}

// refuse says why one cannot begin from a stage, and from which one can.
func (p past) refuse(stage int, why string) *Error {
	hint := "run the pipeline again, without from"
	list := p.takenStages()
	for at := stage; at > 0; at-- {
		if i := slices.IndexFunc(list, func(t taken) bool { return t.Stage == at }); i >= 0 {
			hint = p.standing(list[i])
			break
		}
		if whole, _ := p.whole(at - 1); whole && at > 1 {
			hint = fmt.Sprintf(`begin from {"type": "from", "run": %q, "stage": %d}, and give the stages behind it`, p.id, at-1)
			break
		}
	}
	return fielded("stage", Errorf(InvalidPipeline, hint, "the output of stage %d of that run is incomplete: %w", stage, Incomplete(why)))
}

// Incomplete is the cause of an error that tells that an output is not there: why it was not kept.
type Incomplete string

// Error implements error.
func (i Incomplete) Error() string { return string(i) }

// typeOf returns the type of a stage.
func typeOf(raw json.RawMessage) string {
	var stage struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(raw, &stage) // what is no stage has no type
	return stage.Type
}

// isEach reports whether a stage maps items.
func isEach(raw json.RawMessage) bool {
	var stage struct {
		Type    string `json:"type"`
		ForEach bool   `json:"for_each"`
	}
	return json.Unmarshal(raw, &stage) == nil && (stage.ForEach || stage.Type == "for_each")
}

// sameEach reports whether two stages give the same result for an item: all is equal but for how items are run and
// how results are put together.
func sameEach(a, b json.RawMessage) bool {
	if !isEach(a) || !isEach(b) {
		return false
	}
	x, y := withoutMapping(a), withoutMapping(b)
	return x != nil && reflect.DeepEqual(x, y)
}

// decoded returns the fields of a stage, nil if it is none. Numbers keep every digit.
func decoded(raw json.RawMessage) (stage map[string]any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&stage) != nil {
		return nil
	}
	return stage
}

// objectsIn yields the objects in a decoded value, at any depth: stages among them.
func objectsIn(value any) iter.Seq[map[string]any] {
	return func(yield func(map[string]any) bool) { walkObjects(value, yield) }
}

func walkObjects(value any, yield func(map[string]any) bool) bool {
	switch v := value.(type) {
	case map[string]any:
		if !yield(v) {
			return false
		}
		for _, member := range v {
			if !walkObjects(member, yield) {
				return false
			}
		}
	case []any:
		for _, element := range v {
			if !walkObjects(element, yield) {
				return false
			}
		}
	}
	return true
}

// withoutMapping decodes a stage without the fields of its mapping and what does not change a result: time, and defaults
// that are written out.
func withoutMapping(raw json.RawMessage) map[string]any {
	stage := decoded(raw)
	if stage == nil {
		return nil
	}
	for _, name := range append(fieldNames(reflect.TypeFor[Mapping]()), "timeout") {
		delete(stage, name)
	}
	if args, ok := stage["args"].(map[string]any); ok && len(args) == 0 {
		delete(stage, "args")
	}
	if stage["paginate"] == false {
		delete(stage, "paginate")
	}
	return stage
}

// OpenOutput returns what a stage of an earlier run produced, to be released after use; stage 0 is the last. The error
// is an *Error: UNKNOWN_RUN, or why the output is not there.
func OpenOutput(runs Runs, run string, stage int) (data *io.SectionReader, release func(), err error) {
	if runs == nil {
		return nil, nil, Errorf(UnknownRun, "", "nothing is kept here of earlier runs")
	}
	p, err := findRun(runs, run)
	if err != nil {
		return nil, nil, err
	}
	stage = cmp.Or(stage, len(p.Stages))
	if whole, why := p.whole(stage); !whole {
		return nil, nil, p.refuse(stage, why)
	}
	data, _, release = runs.Open(run, outputName(stage))
	if data == nil { // it has just given way
		return nil, nil, Errorf(UnknownRun, "", "there is no run %s", quoted(run))
	}
	return data, release, nil
}
