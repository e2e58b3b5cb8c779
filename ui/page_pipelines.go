package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// Pipelines are the saved pipelines.
type Pipelines interface {
	Set() *pipelines.Set

	// Viewer is the person whose identity the context has, as one who is no operator.
	Viewer(ctx context.Context) pipelines.Viewer

	// Plan returns the stages of a pipeline with values for its parameters.
	Plan(ctx context.Context, t *pipelines.Tool, args json.RawMessage) ([]stages.PlanStage, error)

	// Test runs the examples of a pipeline, as runs of the person: dry where they would change something.
	Test(ctx context.Context, t *pipelines.Tool) ([]Tested, error)

	// Draft returns the text of a file with a plan, and Diff what differs between two texts.
	Draft(plan json.RawMessage, description string) (string, error)
	Diff(from, to, was, is string) string
}

// A Tested is what has come of an example.
type Tested struct {
	Status string // ok, dry or failed
	Run    string // its request; empty: nothing has run
	Text   string
	Output string
	Millis int64
}

// Badge is the kind of the badge with the status.
func (t Tested) Badge() string {
	return map[string]string{"ok": "good", "dry": "warn", "failed": "bad"}[t.Status]
}

// savedView says which saved pipelines a person may know of.
func (v *Visit) savedView() pipelines.Viewer {
	if v.Who.Operator {
		return pipelines.Operator()
	}
	return v.Options().Pipelines.Viewer(v.Context())
}

func hasPipelines(o *Options) bool { return o.Pipelines != nil }

func pipelinesPage() page {
	return page{path: "pipelines", title: "Pipelines", file: "pipelines.html", menu: "pipelines", keys: "l", there: hasPipelines, show: showPipelines}
}

func pipelinePage() page {
	return page{
		path: "pipelines/{name}", title: "Pipeline", file: "pipeline.html", above: "pipelines", there: hasPipelines, show: showPipeline,
		acts: []act{
			{"pipelines/{name}/run", runSaved},
			{"pipelines/{name}/form", switchSavedForm},
			{"pipelines/{name}/test", testSaved},
			{"pipelines/{name}/adopt", adoptSaved},
			{"pipelines/{name}/remove", removeSaved},
		},
	}
}

func pipelineEditPage() page {
	return page{
		path: "pipelines/{name}/edit", title: "Edit a pipeline", file: "pipelineedit.html", above: "pipelines", there: hasPipelines, show: editSaved,
		acts: []act{{"pipelines/{name}/check", checkSaved}, {"pipelines/{name}/save", saveSaved}},
	}
}

func pipelineNewPage() page {
	return page{
		path: "pipelines-new", title: "New pipeline", file: "pipelineedit.html", above: "pipelines", there: hasPipelines, show: newSaved,
		acts: []act{{"pipelines-new/save", saveSaved}},
	}
}

// A savedRow is a row of the list.
type savedRow struct {
	*pipelines.Tool
	Effect, Reason string
}

func showPipelines(v *Visit) (any, error) {
	tools := v.Options().Pipelines.Set().Tools(v.Context(), v.savedView())
	rows := make([]savedRow, len(tools))
	for i := range tools {
		rows[i] = savedRow{&tools[i], effectOf(&tools[i]), brokenText(&tools[i])}
	}
	where := ""
	if v.Who.Operator {
		where = v.Options().Pipelines.Set().Store().Places()[0]
	}
	return struct {
		Rows  []savedRow
		Where string // they are kept, for operators
		May   bool
	}{rows, where, v.Who.Operator}, nil
}

func effectOf(t *pipelines.Tool) string {
	switch {
	case t.Broken != nil:
		return ""
	case t.Effects.ReadOnly:
		return "only reads"
	}
	return "changes"
}

func brokenText(t *pipelines.Tool) string {
	if t.Broken == nil {
		return ""
	}
	return texts.Fit(t.Broken.Error(), 2000)
}

// A pipelineView is what the page of one saved pipeline shows.
type pipelineView struct {
	savedRow
	argsForm
	May       bool   // the person may change it
	Hint      string // what to do about a broken one
	Picture   []lane
	NoPicture string
	Versions  []pipelines.Version
	Compared  string // with the version before, or the chosen one
	Diff      string
	Examples  []exampleRow
	Result    resultView
}

// An exampleRow is an example of a pipeline, and what has come of it.
type exampleRow struct {
	pipelines.Example
	*Tested // nil: it was not run
}

// PageTitle names the window.
func (p *pipelineView) PageTitle() string { return "Pipeline " + p.Name }

// saved returns the pipeline of the address. Earlier versions have no page: what it runs and changes is the current one.
func (v *Visit) saved() (t *pipelines.Tool, err error) {
	name := v.PathValue("name")
	if err = pipelines.CheckName(name); err == nil {
		t, err = v.Options().Pipelines.Set().Find(v.Context(), name, v.savedView())
	}
	if err != nil {
		return nil, &Problem{http.StatusNotFound, "Not found", err.Error(), "the page Pipelines lists all that you may see"}
	}
	return t, nil
}

func showPipeline(v *Visit) (any, error) {
	p, err := v.pipelineView()
	if err != nil {
		return nil, err
	}
	p.link(v.URL.Query().Get("args"))
	return p, nil
}

func (v *Visit) pipelineView() (*pipelineView, error) {
	t, err := v.saved()
	if err != nil {
		return nil, err
	}
	p := &pipelineView{savedRow: savedRow{t, effectOf(t), brokenText(t)}, May: v.Who.Operator}
	p.At = "pipelines/" + url.PathEscape(t.Name)
	if e, ok := errors.AsType[*stages.Error](t.Broken); ok {
		p.Hint = texts.Fit(e.Hint, 600)
	}
	if p.May {
		if p.Versions, err = v.Options().Pipelines.Set().Store().Versions(v.Context(), t.Name); err != nil && !errors.Is(err, pipelines.ErrStore) { // else some are there
			return nil, problemOf(err)
		}
	}
	p.compare(v)
	if t.Definition == nil {
		return p, nil
	}
	for _, e := range t.Definition.Examples {
		p.Examples = append(p.Examples, exampleRow{Example: e})
	}
	args := exampleArgs(v.Context(), t)
	p.argsForm = newArgsForm(p.At, t.Schema, args)
	if list, err := v.Options().Pipelines.Plan(v.Context(), t, args); err != nil {
		p.NoPicture = texts.Fit(err.Error(), 600)
	} else {
		p.Picture = planPicture(list)
	}
	return p, nil
}

// compare shows what differs between the version with a number and that before it; by default the current one.
func (p *pipelineView) compare(v *Visit) {
	want, _ := strconv.Atoi(v.URL.Query().Get("diff")) // else the current one
	want = cmp.Or(want, p.Version.Number)
	for i, is := range p.Versions {
		if is.Number == want && i+1 < len(p.Versions) {
			was := p.Versions[i+1]
			name := func(version pipelines.Version) string { return p.Name + "@" + strconv.Itoa(version.Number) }
			p.Compared, p.Diff = name(was)+" and "+name(is), texts.Cut(v.Options().Pipelines.Diff(name(was), name(is), was.Text, is.Text), diffMost)
		}
	}
}

// exampleArgs returns values for the parameters: those of the first example that fits, or some that fit the schema.
func exampleArgs(ctx context.Context, t *pipelines.Tool) json.RawMessage {
	for _, e := range t.Definition.Examples {
		if e.Wrong == "" {
			return e.Args
		}
	}
	args, _ := schemas.Example(ctx, t.Schema, t.Info.Input)
	return args
}

// callable returns the page of a pipeline that can be called.
func (v *Visit) callable() (*pipelineView, error) {
	p, err := v.pipelineView()
	if err == nil && p.Reason != "" {
		err = &Problem{http.StatusConflict, "The pipeline cannot be called", p.Reason, p.Hint}
	}
	return p, err
}

// switchSavedForm shows the values in the other mode.
func switchSavedForm(v *Visit) (any, error) {
	p, err := v.callable()
	if err != nil {
		return nil, err
	}
	p.turn(v.PostForm)
	return p, nil
}

// runSaved runs a saved pipeline as a stage of the server pipelines, as an agent would.
func runSaved(v *Visit) (any, error) {
	p, err := v.callable()
	if err != nil {
		return nil, err
	}
	args := p.read(v.PostForm)
	if args == nil || p.refuse(p.Info.Input.Check(v.Context(), args, false)) {
		return p, nil
	}
	plan := `[{"type": "tool", "server": ` + texts.JSON(pipelines.Server) + `, "name": ` + texts.JSON(p.Name) + `, "args": ` + string(args) + `}]`
	p.Result = v.run(plan, v.PostFormValue("dry") != "", v.PostFormValue("agreed"))
	p.Result.Act, p.Result.Target = p.At+"/run", "#pipeline-call"
	for i := range p.Result.Problems {
		p.Result.Problems[i].Fix = nil // it is for the plan around the call
	}
	return p, nil
}

// testSaved runs the examples, with the limits of the person.
func testSaved(v *Visit) (any, error) {
	if err := v.operator(); err != nil {
		return nil, err
	}
	p, err := v.callable()
	if err != nil {
		return nil, err
	}
	tests, err := v.Options().Pipelines.Test(v.Context(), p.Tool)
	if err != nil {
		return nil, problemOf(err)
	}
	for i := range min(len(tests), len(p.Examples)) {
		one := &tests[i]
		if !v.keeps(one.Run) {
			one.Run = ""
		}
		p.Examples[i].Tested = one
	}
	return p, nil
}

// keeps reports whether a run can be looked at.
func (v *Visit) keeps(request string) bool {
	if request == "" || v.Options().Runs == nil {
		return false
	}
	_, err := v.Options().Runs.Run(v.Context(), v.Viewer(), request)
	return err == nil
}

func adoptSaved(v *Visit) (any, error) {
	return v.changeSaved(func(ctx context.Context, name string, base int) error {
		_, err := v.Options().Pipelines.Set().Store().Adopt(ctx, name, base)
		return err
	}, "pipelines/"+url.PathEscape(v.PathValue("name")))
}

func removeSaved(v *Visit) (any, error) {
	return v.changeSaved(v.Options().Pipelines.Set().Store().Remove, "pipelines")
}

// changeSaved changes the version that the person has seen.
func (v *Visit) changeSaved(change func(ctx context.Context, name string, base int) error, to string) (any, error) {
	if err := v.operator(); err != nil {
		return nil, err
	}
	base, err := strconv.Atoi(v.PostFormValue("base"))
	if err == nil {
		err = change(v.Context(), v.PathValue("name"), base)
	}
	if err != nil {
		return nil, savedProblem(err)
	}
	v.console.Changed("pipelines")
	v.To(to)
	return nil, nil
}

// savedProblem is an error of the store for people.
func savedProblem(err error) error {
	switch {
	case errors.Is(err, pipelines.ErrConflict):
		return &Problem{http.StatusConflict, "Somebody else has changed it", err.Error(), "your text is still here: compare it with the current version, then save again"}
	case errors.Is(err, pipelines.ErrUnsettled):
		return &Problem{http.StatusServiceUnavailable, "It may have been saved", texts.Fit(err.Error(), 2000), "your text is still here: look at the current version before you save again"}
	case errors.Is(err, pipelines.ErrTaken), errors.Is(err, pipelines.ErrFile), errors.Is(err, pipelines.ErrFull), errors.Is(err, pipelines.ErrNotFound):
		return &Problem{http.StatusConflict, "It was not saved", err.Error(), ""}
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	return &Problem{http.StatusUnprocessableEntity, "It was not saved", texts.Fit(err.Error(), 2000), ""}
}

// An editView is what the editor of a saved pipeline shows.
type editView struct {
	Name, Text string
	Base       int // the version that the text follows
	New        bool
	At         string
	Conflict   string // what differs between the text and what somebody else has saved meanwhile
	Problem    *Problem
}

func editSaved(v *Visit) (any, error) {
	t, err := v.saved()
	if err != nil {
		return nil, err
	}
	if err := v.operator(); err != nil {
		return nil, err
	}
	return &editView{Name: t.Name, Text: t.Version.Text, Base: t.Version.Number, At: "pipelines/" + url.PathEscape(t.Name)}, nil
}

func newSaved(v *Visit) (any, error) {
	if err := v.operator(); err != nil {
		return nil, err
	}
	plan := json.RawMessage(example)
	if request := v.URL.Query().Get("run"); request != "" && v.Options().Runs != nil {
		d, err := v.Options().Runs.Run(v.Context(), v.Viewer(), request)
		if err != nil {
			return nil, problemOf(err)
		}
		plan = json.RawMessage(arranged(d.Plan))
	}
	text, err := v.Options().Pipelines.Draft(plan, "")
	if err != nil {
		return nil, savedProblem(err)
	}
	return &editView{Text: text, New: true, At: "pipelines-new"}, nil
}

// checkSaved answers the editor. The check is against all servers.
func checkSaved(v *Visit) (any, error) {
	if !v.Who.Operator {
		return nil, v.operator()
	}
	return v.JSON(map[string]any{"problems": v.checkText(v.PathValue("name"), v.PostFormValue("text"))})
}

// checkText says what is wrong with the text of a file.
func (v *Visit) checkText(name, text string) []problem {
	list := []problem{}
	add := func(at, severity, text string) {
		list = append(list, problem{At: at, Message: texts.Fit(text, 4000), Severity: severity})
	}
	d, err := pipelines.Parse(name+".json", []byte(text))
	if err != nil {
		add("", "error", err.Error())
		return list
	}
	if e := v.Options().Pipelines.Set().Inspect(v.Context(), name, d, ""); e != nil {
		add("", "error", e.Error())
	}
	for i, e := range d.Examples {
		if e.Wrong != "" {
			add("/examples/"+strconv.Itoa(i), "warning", "The example does not fit the parameters: "+e.Wrong)
		}
	}
	return list
}

func saveSaved(v *Visit) (any, error) {
	if err := v.operator(); err != nil {
		return nil, err
	}
	name, text := cmp.Or(v.PathValue("name"), strings.TrimSpace(v.PostFormValue("name"))), v.PostFormValue("pipeline")
	base, _ := strconv.Atoi(v.PostFormValue("base")) // else it must be new
	e := &editView{Name: name, Text: text, Base: base, New: v.PathValue("name") == "", At: strings.TrimSuffix(strings.TrimPrefix(v.URL.EscapedPath(), "/"), "/save")}
	err := pipelines.CheckName(name)
	if err == nil {
		_, err = pipelines.Parse(name+".json", []byte(text))
	}
	store := v.Options().Pipelines.Set().Store()
	if err == nil {
		_, err = store.Save(v.Context(), name, []byte(text), base, pipelines.Author{})
	}
	if err == nil {
		v.console.Changed("pipelines")
		v.To("pipelines/" + url.PathEscape(name))
		return nil, nil
	}
	e.Problem, _ = errors.AsType[*Problem](savedProblem(err))
	if errors.Is(err, pipelines.ErrConflict) {
		if now, gerr := store.Get(v.Context(), name, pipelines.Everybody); gerr == nil {
			e.Base = now.Version.Number
			e.Conflict = texts.Cut(v.Options().Pipelines.Diff(name+"@"+strconv.Itoa(now.Version.Number), "your text", now.Version.Text, text), diffMost)
		}
	}
	return e, nil
}
