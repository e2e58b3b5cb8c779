package ui

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// A Playground checks and runs pipelines as the person whose identity the context has, as an agent's call would.
type Playground interface {
	Words

	Check(ctx context.Context, plan string) (stages.Plan, []*stages.Error)

	// Start begins a run and returns when it has begun, or has ended before that. The run goes on without the context's end.
	Start(ctx context.Context, plan string, dry bool) (request string, reply *Reply)

	// Reply returns the reply to a run; nil: it is not there yet. False: the person has not started the run, or it is forgotten.
	Reply(ctx context.Context, request string) (*Reply, bool)

	// EndUser forgets the replies of an identity that has lost access: its next holder is somebody else.
	EndUser(id string)
}

// A Reply is what an agent would have read.
type Reply struct {
	Texts  []string
	Failed bool
}

// example is the plan of a playground that nobody has written in.
const example = `[
  {"type": "tool", "server": "demo", "name": "list_orders"},
  {"type": "command", "command": "jq", "args": ["-c", "[.orders[] | {id, total}]"]}
]`

func playgroundPage() page {
	return page{
		path: "playground", title: "Playground", file: "playground.html", menu: "playground", keys: "p",
		there: func(o *Options) bool { return o.Playground != nil }, show: showPlayground,
		acts: []act{
			{"playground/check", checkPlan}, {"playground/complete", completePlan}, {"playground/plan", showPlan}, {"playground/run", runPlan},
		},
	}
}

func resultPage() page {
	return page{
		path: "playground/result/{request}", title: "Playground", file: "playground.html", above: "playground",
		there: func(o *Options) bool { return o.Playground != nil && o.Runs != nil }, show: showTried,
	}
}

// A playgroundView is what the playground shows.
type playgroundView struct {
	Text   string
	Given  bool   // the text comes from a run, and goes before what the browser remembers
	From   string // the request of that run
	Plan   planView
	Result resultView
}

// A planView is a checked plan.
type planView struct {
	Empty    bool // nothing has been checked yet
	Picture  []lane
	Problems []problem
	Calls    int64 // at most
	Changes  []string
}

// A resultView is what has become of a run.
type resultView struct {
	Act      string // address of the form that runs it
	Target   string // the part of the page that its answer replaces
	Request  string
	Run      *runView // nil: nothing has begun, or it is forgotten
	Dry      bool
	Ask      []string // what may change something, before anything runs
	Agreed   string
	Problems []problem
	Reply    *Reply
	Awaited  bool // the run goes on, or its reply is not there yet
}

// Running reports whether the run goes on.
func (r resultView) Running() bool { return r.Run != nil && r.Run.Live() }

func showPlayground(v *Visit) (any, error) {
	view := playgroundView{Text: example, Plan: planView{Empty: true}}
	request := v.URL.Query().Get("run")
	if request == "" || v.Options().Runs == nil {
		return view, nil
	}
	d, err := v.Options().Runs.Run(v.Context(), v.Viewer(), request)
	switch {
	case err != nil:
		return nil, problemOf(err)
	case d.Plan == nil:
		return nil, &Problem{http.StatusForbidden, "The plan of this run is not there", "it is another caller's, or too long to be kept", "begin with an empty playground"}
	}
	view.Text, view.Given, view.From = arranged(d.Plan), true, request
	if from := v.URL.Query().Get("from"); from != "" && d.ID != "" {
		view.Text = continued(&d, from)
	}
	return view, nil
}

// continued is a plan that goes on with a run: as it was, or behind one of its stages.
func continued(d *control.RunDetail, from string) string {
	if from == "resume" {
		return "[\n  " + `{"type": "from", "run": ` + texts.JSON(d.ID) + `, "resume": true}` + "\n]"
	}
	var list []json.RawMessage
	n, err := strconv.Atoi(from)
	if err != nil || json.Unmarshal([]byte(arranged(d.Plan)), &list) != nil || n < 1 || n > len(list) {
		return arranged(d.Plan)
	}
	first := `{"type": "from", "run": ` + texts.JSON(d.ID) + `, "stage": ` + strconv.Itoa(n) + `}`
	data, err := json.Marshal(append([]json.RawMessage{json.RawMessage(first)}, list[n:]...))
	if err != nil {
		return arranged(d.Plan)
	}
	return arranged(data)
}

// checkPlan answers the editor.
func checkPlan(v *Visit) (any, error) {
	text := v.PostFormValue("text")
	_, errs := v.Options().Playground.Check(v.Context(), text)
	return v.JSON(map[string]any{"problems": append([]problem{}, problems(text, errs)...)})
}

// completePlan answers the editor.
func completePlan(v *Visit) (any, error) {
	return v.JSON(map[string]any{"options": append([]option{}, complete(v.Context(), v.Options().Playground, v.PostFormValue("text"), v.PostFormValue("before"))...)})
}

func (v *Visit) plan(text string) planView {
	plan, errs := v.Options().Playground.Check(v.Context(), text)
	view := planView{Picture: planPicture(plan.Stages), Problems: problems(text, errs), Calls: plan.Most.Calls}
	view.Changes = changing(plan.Stages)
	return view
}

// changing names the stages that may change something.
func changing(list []stages.PlanStage) (names []string) {
	for _, s := range list {
		inner := changing(s.Stages)
		if s.Changes && len(inner) == 0 {
			inner = []string{string(s.Place) + " " + texts.Fit(s.Label, 120)}
		}
		names = append(names, inner...)
	}
	return names
}

func showPlan(v *Visit) (any, error) {
	text := v.PostFormValue("pipeline")
	return playgroundView{Text: text, Plan: v.plan(text)}, nil
}

func runPlan(v *Visit) (any, error) {
	text := v.PostFormValue("pipeline")
	if strings.TrimSpace(text) == "" {
		return nil, &Problem{http.StatusUnprocessableEntity, "There is no pipeline", "the editor is empty", "write an array of stages"}
	}
	view := playgroundView{Text: text, Result: v.run(text, v.PostFormValue("dry") != "", v.PostFormValue("agreed"))}
	view.Result.Act, view.Result.Target = "playground/run", "#result"
	return view, nil
}

// run starts a pipeline if its check finds no mistake, and the person has agreed to what it may change.
func (v *Visit) run(text string, dry bool, agreed string) resultView {
	plan := v.plan(text)
	if plan.Problems != nil {
		return resultView{Problems: plan.Problems}
	}
	if effects := strings.Join(plan.Changes, "\n"); !dry && effects != "" && effects != agreed {
		return resultView{Ask: plan.Changes, Agreed: effects}
	}
	request, reply := v.Options().Playground.Start(v.Context(), text, dry)
	if request == "" {
		return resultView{Dry: dry, Reply: reply}
	}
	return v.result(request)
}

// result describes a run of the playground.
func (v *Visit) result(request string) resultView {
	r := resultView{Request: request}
	reply, known := v.Options().Playground.Reply(v.Context(), request)
	r.Reply, r.Awaited = reply, known && reply == nil
	d, err := v.Options().Runs.Run(v.Context(), v.Viewer(), request)
	if err != nil {
		return r // nothing is kept of it
	}
	r.Dry = d.DryRun
	r.Awaited = r.Awaited || d.Live()
	r.Run = v.runView(&d)
	r.Run.Stage = nil
	return r
}

func showTried(v *Visit) (any, error) {
	request := v.PathValue("request")
	view := playgroundView{Text: example, Plan: planView{Empty: true}, Result: v.result(request)}
	if view.Result.Run == nil && view.Result.Reply == nil {
		return nil, &Problem{http.StatusNotFound, "Not found", "there is no run " + texts.Quote(request), "runs are known for as long as their outputs are kept"}
	}
	if view.Result.Run != nil && view.Result.Run.Plan != nil {
		view.Text = arranged(view.Result.Run.Plan)
	}
	return view, nil
}
