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

	// Test runs the examples of a pipeline: dry where they would change something.
	Test(ctx context.Context, t *pipelines.Tool) ([]Tested, error)

	// Draft returns the text of a file with a plan, and Diff what differs between two texts.
	Draft(plan json.RawMessage, description string) (string, error)
	Diff(from, to, was, is string) string
}

// A Tested is what has come of an example.
type Tested struct {
	Status string // ok, dry, failed or note
	Args   string
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
	return struct {
		Rows []savedRow
		Dirs []string
		May  bool
	}{rows, v.Options().Pipelines.Set().Store().Dirs(), v.Who.Operator}, nil
}

func effectOf(t *pipelines.Tool) string {
	switch {
	case t.Broken != nil:
		return ""
	case t.Hints.ReadOnly:
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
	May        bool // the person may change it
	At         string
	Parameters []Word
	Args       string // an example of values, as JSON
	Picture    []lane
	NoPicture  string
	Versions   []pipelines.Version
	Compared   string // with the version before, or the chosen one
	Diff       string
	Tests      []Tested
	Tested     bool
	Result     resultView
}

// PageTitle names the window.
func (p *pipelineView) PageTitle() string { return "Pipeline " + p.Name }

// saved returns the pipeline of the address.
func (v *Visit) saved() (*pipelines.Tool, error) {
	t, err := v.Options().Pipelines.Set().Find(v.Context(), v.PathValue("name"), v.savedView())
	if err != nil {
		return nil, &Problem{http.StatusNotFound, "It is not there", err.Error(), "the page Pipelines lists all that you may see"}
	}
	return t, nil
}

func showPipeline(v *Visit) (any, error) { return v.pipelineView() }

func (v *Visit) pipelineView() (*pipelineView, error) {
	t, err := v.saved()
	if err != nil {
		return nil, err
	}
	p := &pipelineView{savedRow: savedRow{t, effectOf(t), brokenText(t)}, May: v.Who.Operator, At: "pipelines/" + url.PathEscape(t.Name)}
	if p.Versions, err = v.Options().Pipelines.Set().Store().Versions(v.Context(), t.Name); err != nil {
		return nil, problemOf(err)
	}
	if !v.Who.Operator {
		p.Versions = nil
	}
	p.compare(v)
	if t.Definition == nil {
		return p, nil
	}
	p.Parameters = parameterWords(t)
	args := exampleArgs(v.Context(), t)
	p.Args = indented(args)
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

// parameterWords describes the parameters.
func parameterWords(t *pipelines.Tool) (list []Word) {
	for _, name := range t.Info.Input.Properties {
		w := Word{Name: name, Detail: strings.Join(t.Info.Input.Declared[name].Types, " or ")}
		if d := t.Info.Input.Declared[name].Default; d != nil {
			w.Info = "default " + texts.Fit(string(d), 120)
		}
		for _, required := range t.Info.Input.Required {
			if required == name {
				w.Info = "required"
			}
		}
		list = append(list, w)
	}
	return list
}

// exampleArgs returns values for the parameters: those of the first example, or some that fit the schema.
func exampleArgs(ctx context.Context, t *pipelines.Tool) json.RawMessage {
	if t.Definition != nil && len(t.Definition.Examples) > 0 && len(t.Definition.Examples[0].Args) > 0 {
		return t.Definition.Examples[0].Args
	}
	args, _ := schemas.Example(ctx, t.Schema, t.Info.Input)
	if len(args) == 0 {
		return json.RawMessage("{}")
	}
	return args
}

// runSaved runs a saved pipeline as a stage of the server pipelines, as an agent would.
func runSaved(v *Visit) (any, error) {
	p, err := v.pipelineView()
	if err != nil {
		return nil, err
	}
	args := strings.TrimSpace(cmp.Or(v.PostFormValue("pipeline"), "{}"))
	if !json.Valid([]byte(args)) {
		return nil, &Problem{http.StatusUnprocessableEntity, "The values are no JSON", "they are an object with a member for each parameter", ""}
	}
	plan := `[{"type": "tool", "server": ` + texts.JSON(pipelines.Server) + `, "name": ` + texts.JSON(p.Name) + `, "args": ` + args + `}]`
	p.Result = v.run(plan, v.PostFormValue("dry") != "", v.PostFormValue("agreed"))
	p.Result.Act = p.At + "/run"
	for i := range p.Result.Problems {
		p.Result.Problems[i].Fix = nil // it is for the plan around the call
	}
	return p, nil
}

// testSaved runs the examples. They belong to nobody, and have no caller's limits.
func testSaved(v *Visit) (any, error) {
	if err := v.operator(); err != nil {
		return nil, err
	}
	p, err := v.pipelineView()
	if err != nil {
		return nil, err
	}
	if p.Tests, err = v.Options().Pipelines.Test(v.Context(), p.Tool); err != nil {
		return nil, problemOf(err)
	}
	p.Tested = true
	return p, nil
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
	case errors.Is(err, pipelines.ErrTaken), errors.Is(err, pipelines.ErrFull), errors.Is(err, pipelines.ErrNotFound):
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
		d, err := v.Options().Runs.Run(v.Viewer(), request)
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
	list := []problem{}
	if err := v.checkText(v.PathValue("name"), v.PostFormValue("text")); err != nil {
		list = append(list, problem{Message: texts.Fit(err.Error(), 4000), Severity: "error"})
	}
	return v.JSON(map[string]any{"problems": list})
}

// checkText says what is wrong with the text of a file.
func (v *Visit) checkText(name, text string) error {
	d, err := pipelines.Parse(name+".json", []byte(text))
	if err != nil {
		return err
	}
	if e := v.Options().Pipelines.Set().Inspect(v.Context(), name, d, ""); e != nil {
		return e
	}
	return nil
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
