package ui

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// Runs are the runs of the gateway, live and finished. [control.Runs] has the meaning of its methods.
type Runs interface {
	Runs(ctx context.Context, v control.Viewer, f control.RunFilter) control.RunList
	Run(ctx context.Context, v control.Viewer, request string) (control.RunDetail, error)
	Output(ctx context.Context, v control.Viewer, r control.OutputRequest) (control.OutputPart, error)
	Cancel(v control.Viewer, request string) error
}

// Bounds of what the pages of runs show.
const (
	runsOnPage = 50
	sampleMost = 4 << 10  // bytes of the input or output of a stage
	diffMost   = 64 << 10 // bytes of a diff
	copyMost   = 32 << 10 // bytes of a plan that can be copied
	maxFilter  = 200      // bytes of a text to look for
)

func runsPage() page {
	return page{
		path: "runs", title: "Runs", file: "runs.html", menu: "runs", keys: "r",
		there: func(o *Options) bool { return o.Runs != nil }, show: showRuns,
	}
}

// runStates are the choices of the filter.
func runStates() []Fact {
	return []Fact{
		{"live", "live"}, {control.RunOK, "ok"}, {control.RunFailed, "failed"}, {control.RunCancelled, "cancelled"}, {control.RunTimedOut, "timed out"},
	}
}

// A runsView is what the page with the list of runs shows.
type runsView struct {
	control.RunFilter
	State          string
	States         []Fact
	Rows           []control.Run
	Page           int
	Self           string // address of the same list
	Before, Behind string // addresses of the neighbouring pages; empty: there is none
	Filtered       bool
}

// First is the number of the first row, from 1.
func (r runsView) First() int { return (r.Page-1)*runsOnPage + 1 }

func showRuns(v *Visit) (any, error) {
	q := v.URL.Query()
	get := func(name string) string { return texts.Cut(strings.TrimSpace(q.Get(name)), maxFilter) }
	f := control.RunFilter{Tool: get("tool"), Caller: get("caller"), Text: get("q")}
	view := runsView{RunFilter: f, State: get("state"), States: runStates(), Page: 1}
	switch {
	case view.State == "live":
		view.RunFilter.States = []string{control.RunRunning, control.RunAsking}
	case view.State != "":
		view.RunFilter.States = []string{view.State}
	}
	if n, err := strconv.Atoi(q.Get("page")); err == nil && n > 0 && n <= 1000 {
		view.Page = n
	}
	f = view.RunFilter
	f.Limit = view.Page * runsOnPage
	list := v.Options().Runs.Runs(v.Context(), v.Viewer(), f)
	view.Rows = list.Runs[min(f.Limit-runsOnPage, len(list.Runs)):]
	view.Filtered = f.Tool+f.Caller+f.Text+view.State != ""
	at := func(page int) string {
		query := url.Values{}
		for name, value := range map[string]string{"q": f.Text, "tool": f.Tool, "caller": f.Caller, "state": view.State} {
			if value != "" {
				query.Set(name, value)
			}
		}
		if page > 1 {
			query.Set("page", strconv.Itoa(page))
		}
		return strings.TrimSuffix("runs?"+query.Encode(), "?")
	}
	view.Self = at(view.Page)
	if view.Page > 1 {
		view.Before = at(view.Page - 1)
	}
	if list.More > 0 {
		view.Behind = at(view.Page + 1)
	}
	return view, nil
}

func runPage() page {
	return page{
		path: "runs/{request}", title: "Run", file: "run.html", above: "runs",
		there: func(o *Options) bool { return o.Runs != nil }, show: showRun,
		acts: []act{{"runs/{request}/cancel", cancelRun}},
	}
}

func outputPage() page {
	return page{
		path: "runs/{request}/output", title: "Output", file: "run.html", above: "runs",
		there: func(o *Options) bool { return o.Runs != nil }, show: download,
	}
}

// A runView is what the page of one run shows.
type runView struct {
	control.RunDetail
	Picture  []lane
	Bars     []timeBar
	Elapsed  time.Duration
	Saved    string // how much less the client has read than the tools have returned
	Failed   *control.RunStage
	Stage    *stageView // that is looked at
	Copies   []Fact     // names and texts to copy
	Edit     bool       // there is a playground
	Save     bool       // the person may save pipelines
	Self     string
	Mine     bool // its data is seen
	RunError string
}

// PageTitle names the window.
func (r *runView) PageTitle() string { return "Run " + r.Request }

// A stageView is one stage of a run with samples of what went in and out.
type stageView struct {
	control.RunStage
	State, Badge  string
	Facts         []Fact
	Input, Output *sampleView // nil: nothing is kept of it
	Window        string
	Error         *control.RunError // if it is the stage that failed
	Number        int               // of a stage of the plan itself; 0: it is within another one
}

// A sampleView is the beginning of some data.
type sampleView struct {
	Text string
	Size int64
	Cut  bool
	Link string // to all of it
}

// A timeBar is a stage in the time line, in percent of the run.
type timeBar struct {
	Place, Label string
	Took, Busy   time.Duration
	Width, Inner string
	Link         string
}

func showRun(v *Visit) (any, error) {
	d, err := v.Options().Runs.Run(v.Context(), v.Viewer(), v.PathValue("request"))
	if err != nil {
		return nil, problemOf(err)
	}
	return v.runView(&d), nil
}

// runView makes what the page of a run shows.
func (v *Visit) runView(d *control.RunDetail) *runView {
	place := v.URL.Query().Get("stage")
	r := &runView{
		RunDetail: *d, Picture: runPicture(d, place), Elapsed: elapsed(&d.Run), Saved: saved(&d.Run), Self: "runs/" + url.PathEscape(d.Request),
		Edit: v.Options().Playground != nil, Save: v.Options().Pipelines != nil && v.Who.Operator, Mine: d.Plan != nil || d.PlanSize > 0,
	}
	r.Bars = timeBars(r)
	if s := stageAt(d.Stages, place); s != nil {
		r.Stage = v.stageView(r, s)
	}
	if !d.Live() {
		r.Copies = v.copies(d)
	}
	return r
}

func elapsed(r *control.Run) time.Duration {
	if r.Ended != nil {
		return r.Ended.Sub(r.Started)
	}
	return time.Since(r.Started)
}

// saved says how much of what tools returned the client did not have to read.
func saved(r *control.Run) string {
	if r.Live() || r.Seen == 0 || r.Returned >= r.Seen {
		return ""
	}
	return fmt.Sprintf("%.3g %%", min(99.9, 100*float64(r.Seen-r.Returned)/float64(r.Seen)))
}

// timeBars is the time line: stages run at the same time, so all bars begin at the left.
func timeBars(r *runView) (list []timeBar) {
	whole := max(r.Elapsed, time.Millisecond)
	for _, s := range r.Stages {
		took, busy := millisOf(s.Millis), millisOf(s.Busy)
		if took == 0 && r.Live() && s.BytesIn+s.BytesOut+s.Calls > 0 {
			took = r.Elapsed
		}
		share := func(d time.Duration) string {
			return strconv.FormatFloat(min(100, 100*float64(d)/float64(whole)), 'f', 1, 64) + "%"
		}
		list = append(list, timeBar{s.Place, s.Label, took, min(busy, took), share(took), share(min(busy, took)), r.Self + "?stage=" + url.QueryEscape(s.Place) + "#stage"})
	}
	return list
}

func millisOf(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// stageView makes what is shown of one stage.
func (v *Visit) stageView(r *runView, s *control.RunStage) *stageView {
	view := &stageView{RunStage: *s, State: stateOf(&r.RunDetail, s)}
	view.Badge = box{State: view.State}.Badge()
	for _, row := range []struct {
		name string
		n    int64
	}{
		{"Items", s.Items + s.Resumed},
		{"Succeeded", s.OK},
		{"Failed", s.Failed},
		{"Skipped", s.Skipped},
		{"After a retry", s.Retried},
		{"Retries", s.Retries},
		{"Shared answers", s.Shared},
		{"From an earlier run", s.Resumed},
		{"Calls", s.Calls},
		{"Refused", s.Refused},
		{"Without an answer", s.Unknown},
		{"Pages", s.Pages},
		{"Items on pages", s.Fetched},
	} {
		if row.n > 0 {
			view.Facts = append(view.Facts, Fact{row.name, number(row.n)})
		}
	}
	view.Facts = append(view.Facts, Fact{"In", texts.Bytes(s.BytesIn)}, Fact{"Out", texts.Bytes(s.BytesOut)})
	if s.Millis > 0 {
		view.Facts = append(view.Facts, Fact{"Time", Duration(millisOf(s.Millis))}, Fact{"Busy", Duration(millisOf(s.Busy))})
	}
	for _, w := range r.Windows {
		if w.Place == s.Place {
			view.Window = w.Text
		}
	}
	if r.Error != nil && r.Error.Place == s.Place {
		view.Error = r.Error
	}
	number, err := strconv.Atoi(s.Place)
	if err != nil || r.Live() {
		return view
	}
	view.Number = number
	view.Input, view.Output = v.sample(r, number-1), v.sample(r, number)
	return view
}

// sample returns the beginning of the output of a stage; nil: it is not kept, or not for this person.
func (v *Visit) sample(r *runView, stage int) *sampleView {
	if stage < 1 || stage > len(r.Stages) || r.Stages[stage-1].Kept == nil {
		return nil
	}
	part, err := v.Options().Runs.Output(v.Context(), v.Viewer(), control.OutputRequest{Request: r.Request, Stage: stage, Max: sampleMost})
	if err != nil {
		return nil
	}
	text, _ := texts.Valid(part.Data)
	return &sampleView{Text: text, Size: part.Size, Cut: part.Size > int64(len(part.Data)), Link: fmt.Sprintf("%s/output?of=%d", r.Self, stage)}
}

// copies are the forms in which a plan can be used elsewhere.
func (v *Visit) copies(d *control.RunDetail) []Fact {
	if len(d.Plan) == 0 || len(d.Plan) > copyMost {
		return nil
	}
	plan := arranged(d.Plan)
	list := []Fact{{"JSON", plan}, {"mcsh run", "mcsh run " + texts.ShellWord(plan)}}
	if at := v.Options().About().Address; at != "" {
		body := texts.JSON(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
			"name": "execute_pipeline", "arguments": map[string]any{"pipeline": d.Plan},
			"_meta": map[string]any{
				"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": map[string]string{"name": "curl", "version": "1"},
				"io.modelcontextprotocol/clientCapabilities": struct{}{},
			},
		}})
		token := ""
		if v.Who.ID != "" {
			token = ` -H "Authorization: Bearer $MCSH_TOKEN"`
		}
		list = append(list, Fact{"curl", "curl " + texts.ShellWord(at) + token + " -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' " +
			"-H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call' -H 'Mcp-Name: execute_pipeline' --data " + texts.ShellWord(body)})
	}
	return list
}

// arranged writes a plan for people: a stage on each line. Another text it leaves as it is.
func arranged(plan []byte) string {
	var text string
	if json.Unmarshal(plan, &text) == nil {
		plan = []byte(text)
	}
	var list []json.RawMessage
	if json.Unmarshal(plan, &list) != nil {
		return string(plan)
	}
	lines := make([]string, len(list))
	for i, stage := range list {
		lines[i] = "  " + spaced(stage)
	}
	if len(lines) == 0 {
		return "[]"
	}
	return "[\n" + strings.Join(lines, ",\n") + "\n]"
}

// spaced writes JSON on one line, with a space after commas and colons.
func spaced(raw json.RawMessage) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case quoted && c == '\\' && i+1 < len(raw):
			b.WriteByte(c)
			i++
			b.WriteByte(raw[i])
			continue
		case c == '"':
			quoted = !quoted
		case !quoted && strings.IndexByte(" \t\r\n", c) >= 0:
			continue
		}
		b.WriteByte(c)
		if !quoted && (c == ',' || c == ':') {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func cancelRun(v *Visit) (any, error) {
	if err := v.Options().Runs.Cancel(v.Viewer(), v.PathValue("request")); err != nil {
		return nil, problemOf(err)
	}
	v.Notice("The run is being cancelled. Calls that may change something end first.")
	return showRun(v)
}

// download sends the whole output of a stage, or a picture in it, decoded.
func download(v *Visit) (any, error) {
	out, err := v.output()
	if err != nil {
		return nil, err
	}
	v.done = true
	h := v.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="`+fileName(out.request.Request)+`"`)
	h.Set("Cache-Control", "no-store")
	var data io.Reader = io.NewSectionReader(out, 0, out.Size())
	if size := v.number("size"); size > 2 { // within its quotes
		data = base64.NewDecoder(base64.StdEncoding, io.NewSectionReader(out, v.number("at")+1, min(size, maxPicture)-2))
	} else {
		h.Set("Content-Length", strconv.FormatInt(out.Size(), 10))
	}
	if _, err := io.Copy(v.w, data); err != nil && v.Context().Err() == nil {
		panic(http.ErrAbortHandler) // the browser must see that the file is not whole
	}
	return nil, nil
}

// fileName is the name of the file with the output of a run.
func fileName(request string) string {
	return strings.Map(func(c rune) rune {
		if c < 0x80 && (c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z') {
			return c
		}
		return -1
	}, request) + ".txt"
}

// problemOf is an error of the sources of pages, for people.
func problemOf(err error) error {
	if e, ok := errors.AsType[*control.Error](err); ok {
		title := map[int]string{http.StatusNotFound: "Not found", http.StatusForbidden: "You may not see this", http.StatusConflict: "That is too late"}[e.Status]
		return &Problem{e.Status, cmp.Or(title, "That did not work"), e.Message, e.Hint}
	}
	if e, ok := errors.AsType[*stages.Error](err); ok {
		return &Problem{http.StatusUnprocessableEntity, "That did not work", e.Msg, e.Hint}
	}
	return err
}

// Kept reports whether the output of a stage is kept.
func (r *runView) Kept() bool {
	return len(r.Stages) > 0 && r.Stages[len(r.Stages)-1].Kept != nil
}

// Resumable reports whether the run can be continued as it is.
func (r *runView) Resumable() bool {
	return r.ID != "" && r.Edit && (r.State != control.RunOK || r.DryRun)
}

// Ready are the numbers of the stages whose outputs another plan can begin with.
func (r *runView) Ready() (list []int) {
	for i, s := range r.Stages {
		if s.Kept != nil && r.ID != "" && i < len(r.Stages)-1 {
			list = append(list, i+1)
		}
	}
	slices.Reverse(list)
	return list
}
