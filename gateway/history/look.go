package history

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// shownTools bounds the tools that a row names.
const shownTools = 20

// sees reports whether a viewer may know of a run, and its data.
func (r *Run) sees(v control.Viewer) (row, data bool) {
	own, all := v.Caller != "" && r.User == v.Caller && v.Reaches(r.Within, r.Groups), v.All && !v.Limited
	return all || own, own || all && v.Results
}

// A look is the state of a run at one moment.
type look struct {
	*Run
	asking bool
	end    *end
	stages func() []stages.StageReport
	plan   json.RawMessage // nil: it is too long, or data that the viewer does not see
	size   int             // of the plan
	data   bool            // the viewer sees data
}

// look returns the state of a run; the caller has mu.
func (r *Run) look(data bool) look {
	l := look{Run: r, asking: r.asking > 0, end: r.end, stages: r.stages, size: len(r.Plan), data: data}
	if data && l.size <= mostPlan {
		l.plan = r.Plan
	}
	if r.end != nil {
		l.size = r.end.plan
	}
	return l
}

// find returns a run that a viewer may know of; the caller has mu.
func (h *History) find(v control.Viewer, request string) (*Run, error) {
	r := h.all[request]
	if r != nil {
		seen, _ := r.sees(v)
		if seen && (r.end == nil || !h.expired(r)) {
			return r, nil
		}
	}
	return nil, &control.Error{
		Status: 404, Message: "there is no run " + texts.Quote(request),
		Hint: "runs are known for as long as their outputs are kept; mcsh runs ls lists them",
	}
}

// reports returns the figures of the stages so far.
func (l look) reports() []stages.StageReport {
	switch {
	case l.end != nil:
		return l.end.stages
	case l.stages != nil:
		return l.stages()
	}
	return nil
}

// row describes the run in a line.
func (l look) row(list []stages.StageReport) control.Run {
	row := l.Row
	row.State = control.RunRunning
	switch {
	case l.end != nil:
		ended := l.end.at.UTC()
		row.State, row.Ended, row.Returned = l.end.state, &ended, l.end.returned
		if l.end.err != nil {
			row.Code = l.end.err.Code
		}
	case l.asking:
		row.State = control.RunAsking
	}
	if len(list) > 0 {
		row.Seen = list[0].BytesIn
	}
	add(&row, list)
	return row
}

// add sums up the figures of stages.
func add(row *control.Run, list []stages.StageReport) {
	for _, s := range list {
		row.Items += s.OK + s.Failed + s.Resumed
		row.Failed += s.Failed
		row.Calls += s.Calls
		row.Seen += s.Returned
		if name := s.Label.Called(); s.Label.Server != "" && len(row.Tools) < shownTools && !slices.Contains(row.Tools, name) {
			row.Tools = append(row.Tools, name)
		}
		add(row, s.Stages)
	}
}

// Runs implements [control.Runs].
func (h *History) Runs(ctx context.Context, v control.Viewer, f control.RunFilter) control.RunList {
	h.lookElsewhere(ctx)
	h.mu.Lock()
	answer := control.RunList{Cursor: h.version, Runs: []control.Run{}}
	var found []look
	for _, r := range h.all {
		if seen, data := r.sees(v); seen && (r.end == nil || !h.expired(r)) {
			found = append(found, r.look(data))
		}
	}
	h.mu.Unlock()
	slices.SortFunc(found, func(a, b look) int {
		return cmp.Or(b.Row.Started.Compare(a.Row.Started), strings.Compare(a.Row.Request, b.Row.Request))
	})
	for _, l := range found {
		row := l.row(l.reports())
		switch {
		case !l.fits(f, row):
		case f.Limit > 0 && len(answer.Runs) >= f.Limit:
			answer.More++
		default:
			answer.Runs = append(answer.Runs, row)
		}
	}
	return answer
}

// fits reports whether a filter chooses a run.
func (l look) fits(f control.RunFilter, row control.Run) bool {
	has := func(part string, in ...string) bool {
		return part == "" || slices.ContainsFunc(in, func(text string) bool {
			return strings.Contains(strings.ToLower(text), strings.ToLower(part))
		})
	}
	inPlan := func() bool { return strings.Contains(strings.ToLower(string(l.plan)), strings.ToLower(f.Text)) }
	return (len(f.States) == 0 || slices.Contains(f.States, row.State)) && has(f.Tool, append([]string{row.Tool}, row.Tools...)...) &&
		has(f.Caller, row.Caller, row.Client) &&
		(has(f.Text, row.Request, row.Caller, row.Client, row.Tool, row.Code, strings.Join(row.Tools, " ")) || inPlan())
}

// Run implements [control.Runs].
func (h *History) Run(ctx context.Context, v control.Viewer, request string) (control.RunDetail, error) {
	h.lookElsewhere(ctx)
	h.mu.Lock()
	r, err := h.find(v, request)
	if err != nil {
		h.mu.Unlock()
		return control.RunDetail{}, err
	}
	_, data := r.sees(v)
	l := r.look(data)
	d := control.RunDetail{Cursor: h.version, Plan: l.plan}
	h.mu.Unlock()
	list := l.reports()
	d.Run, d.Stages, d.Continues = l.row(list), stagesOf(list, data), h.continued(v, l.From)
	if data && l.plan == nil {
		d.PlanSize = l.size
	}
	if l.end != nil {
		h.ended(ctx, &d, l)
	}
	return d, nil
}

// continued returns the request of the run whose id another one begins with, if it is known and the viewer may know of it.
func (h *History) continued(v control.Viewer, id string) string {
	if id == "" {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.all {
		if seen, _ := r.sees(v); seen && r.end != nil && r.end.id == id {
			return r.Row.Request
		}
	}
	return ""
}

// ended adds to a description how the run has ended, and what is kept of its outputs.
func (h *History) ended(ctx context.Context, d *control.RunDetail, l look) {
	e := l.end
	d.Cut, d.Error = e.cut, e.err
	if !l.data {
		if e.err != nil {
			d.Error = &control.RunError{Code: e.err.Code, Place: stages.Place(e.err.Place).Numbers(), Item: e.err.Item}
		}
		return
	}
	d.ID = e.id
	for _, w := range e.windows {
		d.Windows = append(d.Windows, control.RunWindow{Place: string(w.Place), Text: w.Text})
	}
	if e.id == "" {
		return
	}
	kept := stages.KeptSizes(ctx, h.kept.Of(l.Owner), e.id)
	for i := range d.Stages {
		d.Stages[i].Ended = true
		if size, ok := kept[stages.Place(d.Stages[i].Place)]; ok {
			d.Stages[i].Kept = &size
		}
	}
}

// Output implements [control.Runs].
func (h *History) Output(ctx context.Context, v control.Viewer, o control.OutputRequest) (part control.OutputPart, err error) {
	h.lookElsewhere(ctx)
	h.mu.Lock()
	r, err := h.find(v, o.Request)
	if err != nil {
		h.mu.Unlock()
		return part, err
	}
	_, data := r.sees(v)
	e := r.end
	h.mu.Unlock()
	switch {
	case !data:
		return part, &control.Error{Status: 403, Message: "outputs are data of callers, which this gateway does not show here", Hint: "its operator can allow it with --console-results for the console, with --control-results for those with control tokens, or look on its machine"}
	case e == nil:
		return part, &control.Error{Status: 409, Message: "run " + o.Request + " has not ended yet", Hint: "mcsh runs wait waits for it"}
	case e.id == "":
		return part, &control.Error{Status: 404, Message: "nothing is kept of what " + o.Request + " has returned", Hint: "outputs of pipelines are kept"}
	case o.Offset < 0 || o.Max < 0 || o.Stage < 0:
		return part, &control.Error{Status: 400, Message: "stage, offset and max are not below zero"}
	}
	out, release, err := stages.OpenOutput(ctx, h.kept.Of(r.Owner), e.id, o.Stage)
	if err != nil {
		found, _ := errors.AsType[*stages.Error](err)
		return part, &control.Error{Status: 404, Message: strings.ReplaceAll(found.Msg, e.id, o.Request), Hint: "mcsh runs show lists the stages; with --json, kept names those whose outputs are kept"}
	}
	defer release()
	if o.Offset > out.Size() {
		return part, &control.Error{Status: 400, Message: "offset is behind the end of the output"}
	}
	most := min(cmp.Or(o.Max, control.MaxPart), control.MaxPart)
	part = control.OutputPart{Offset: o.Offset, Size: out.Size(), Data: make([]byte, min(int64(most), out.Size()-o.Offset))}
	if _, err := out.ReadAt(part.Data, o.Offset); err != nil && err != io.EOF {
		return control.OutputPart{}, &control.Error{Status: 500, Message: "the output is gone", Hint: "run the pipeline again"}
	}
	return part, nil
}

// stagesOf describes stages to a viewer.
func stagesOf(list []stages.StageReport, data bool) []control.RunStage {
	shown := make([]control.RunStage, 0, len(list))
	for _, s := range list {
		r := control.RunStage{
			Place: s.Place.Numbers(), Label: s.Label.Kind, Kind: s.Label.Kind, Changes: s.Changes, Ended: s.Millis > 0,
			Items: s.Items, Total: s.Total, OK: s.OK, Failed: s.Failed, Skipped: s.Skipped, Retried: s.Retried, Retries: s.Retries,
			Shared: s.Shared, Resumed: s.Resumed, Calls: s.Calls, Refused: s.Refused, Unknown: s.Unknown, Pages: s.Pages, Fetched: s.Fetched,
			Returned: s.Returned, BytesIn: s.BytesIn, BytesOut: s.BytesOut, Millis: s.Millis, Busy: s.Busy,
			ToolDone: s.Tool.Done, ToolTotal: s.Tool.Total, Others: s.OtherMessages, Stages: stagesOf(s.Stages, data),
		}
		if s.Label.Server != "" {
			r.Label = s.Label.String()
		}
		if data {
			r.Place, r.Label = string(s.Place), s.Label.String()
			r.Branch, r.Input, r.ToolSays, r.Notes = s.Branch, s.Input, s.Tool.Message, s.Notes
			for _, m := range s.Messages {
				r.Messages = append(r.Messages, control.RunFailures(m))
			}
		}
		shown = append(shown, r)
	}
	return shown
}

var _ control.Runs = (*History)(nil)
