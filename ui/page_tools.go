package ui

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Tools has the tools of the servers, as the caller may use them.
type Tools interface {
	// Tools lists the tools that fit a query, best first, or all by server; of one server, if it is named.
	Tools(ctx context.Context, server, query string) ToolList

	Tool(ctx context.Context, server, name string) (ToolDetail, error)

	// Check returns a sentence for each mistake in arguments, or says why they are not checked.
	Check(ctx context.Context, server, name string, args json.RawMessage) (wrong []string, note string)

	// Call calls a tool as the caller, under the limits and policies of a client.
	Call(ctx context.Context, server, name string, args json.RawMessage) (Called, error)
}

// A ToolList lists tools.
type ToolList struct {
	Tools   []ToolRow
	Absent  []Absence // servers without an answer
	Servers []string  // all of them
}

// An Absence is a server whose tools are not known.
type Absence struct{ Server, Status, Why string }

// A ToolRow is a tool in a list.
type ToolRow struct {
	Server, Name, Title, Description string
	Signature                        string
	Changes                          bool // a call may change something
}

// A ToolDetail is all that is known of a tool.
type ToolDetail struct {
	ToolRow
	Input, Output json.RawMessage
	Returns       string // the shape of its results, learned or declared
	Example       json.RawMessage
	Doubt, Flaw   string // why it counts as one that changes something; why arguments are not checked
	Original      string // its name at the server, if that differs
	Idempotent    bool
	Annotations   []Fact
	Changed       string // since its first use, as a diff; empty: it has not
}

// Called is what a call has come to.
type Called struct {
	Request string // the name of the run in logs
	Run     string // whose output is kept; empty: it is not
	Failed  bool
	Text    string // what a client reads
	Time    time.Duration
}

// Bounds of the pages of tools.
const (
	shownTools  = 200 // in a list at once
	maxQuery    = 500 // bytes
	maxArgsText = 1 << 20
)

func toolsPage() page {
	return page{path: "tools", title: "Tools", file: "tools.html", menu: "tools", keys: "t", there: hasTools, show: showTools}
}

func toolPage() page {
	return page{
		path: "tools/{server}/{tool}", title: "Tool", file: "tool.html", above: "tools", there: hasTools, show: showTool,
		acts: []act{{"tools/{server}/{tool}/call", callTool}, {"tools/{server}/{tool}/form", switchForm}},
	}
}

func hasTools(o *Options) bool { return o.Tools != nil }

// Starting reports whether more tools will be known soon.
func (t *toolsView) Starting() bool {
	return slices.ContainsFunc(t.Absent, func(a Absence) bool { return a.Status == "starting" })
}

// A toolsView is a list of tools with the search that found it.
type toolsView struct {
	ToolList
	Query, Server string
	All, More     int // tools that were found; the number to show next, 0: all are shown
}

func showTools(v *Visit) (any, error) {
	q := v.URL.Query()
	t := &toolsView{Query: texts.Fit(strings.TrimSpace(q.Get("q")), maxQuery), Server: texts.Fit(q.Get("server"), maxQuery)}
	t.ToolList = v.Options().Tools.Tools(v.Context(), t.Server, t.Query)
	t.All = len(t.Tools)
	if most := max(shownTools, int(min(v.number("most"), 1<<20))); t.All > most {
		t.Tools, t.More = t.Tools[:most], most+10*shownTools
	}
	return t, nil
}

// A toolView is a tool with a form to call it.
type toolView struct {
	ToolDetail
	Form    *Field
	Formed  bool   // there is a form
	Mode    string // form or json
	JSON    string // the arguments, in that mode
	Wrong   []string
	Note    string
	Called  *Called
	Results bool
	Fields  *Field // the schema, for reading
}

// PageTitle names the window.
func (t *toolView) PageTitle() string { return t.Name }

// tool returns the page of the tool in an address, with an empty form.
func (v *Visit) tool() (*toolView, error) {
	d, err := v.Options().Tools.Tool(v.Context(), v.PathValue("server"), v.PathValue("tool"))
	if err != nil {
		return nil, &Problem{http.StatusNotFound, "This tool is not there", err.Error(), "its server may have changed; the page Tools has all"}
	}
	t := &toolView{ToolDetail: d, Mode: "form", Results: v.Options().Runs != nil}
	t.Form, t.Formed = formOf(d.Input)
	t.Fields, _ = formOf(d.Input)
	if empty := len(t.Form.Fields) == 0; empty && !hasMembers(d.Input) {
		t.Formed = true // there is nothing to enter
	} else if !t.Formed {
		t.Mode, t.JSON = "json", indented(d.Example)
	}
	return t, nil
}

// hasMembers reports whether a schema allows arguments that it may not name.
func hasMembers(schema json.RawMessage) bool {
	of, _ := members(schema)
	for _, name := range []string{"properties", "anyOf", "oneOf", "allOf", "$ref", "patternProperties"} {
		if inner, names := members(of[name]); inner != nil && len(names) > 0 || len(of[name]) > 2 {
			return true
		}
	}
	return false
}

func indented(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "{}"
	}
	data, err := json.MarshalIndent(raw, "", "  ")
	if err != nil {
		return string(raw)
	}
	return string(data)
}

// Pretty returns a schema in lines.
func (t *toolView) Pretty(raw json.RawMessage) string { return indented(raw) }

func showTool(v *Visit) (any, error) {
	t, err := v.tool()
	if err != nil {
		return nil, err
	}
	if given := v.URL.Query().Get("args"); given != "" && json.Valid([]byte(given)) { // a link to a call
		if t.Mode == "form" {
			t.Form.fill(json.RawMessage(given))
		} else {
			t.JSON = indented(json.RawMessage(given))
		}
	}
	return t, nil
}

// arguments reads the form that was sent. It returns nil after noting what is wrong.
func (t *toolView) arguments(form url.Values) json.RawMessage {
	if form.Get("mode") != "json" {
		t.Mode = "form"
		args := t.Form.readObject(form)
		if t.Form.Any() {
			t.Wrong = []string{"Some values cannot be sent."}
			return nil
		}
		return args
	}
	t.Mode, t.JSON = "json", form.Get("json")
	text := strings.TrimSpace(t.JSON)
	if text == "" {
		return json.RawMessage("{}")
	}
	var v json.RawMessage
	switch err := json.Unmarshal([]byte(text), &v); {
	case len(text) > maxArgsText:
		t.Wrong = []string{"The arguments have more than " + texts.Bytes(maxArgsText) + "."}
	case err != nil:
		t.Wrong = []string{"This is not valid JSON: " + err.Error()}
	default:
		return v
	}
	return nil
}

// switchForm shows the arguments in the other mode.
func switchForm(v *Visit) (any, error) {
	t, err := v.tool()
	if err != nil {
		return nil, err
	}
	args := t.arguments(v.PostForm)
	switch {
	case args == nil:
	case t.Mode == "form":
		t.Mode, t.JSON = "json", indented(args)
	case t.Formed:
		t.Mode = "form"
		t.Form.fill(args)
	}
	return t, nil
}

// callTool calls the tool with what was entered.
func callTool(v *Visit) (any, error) {
	t, err := v.tool()
	if err != nil {
		return nil, err
	}
	args := t.arguments(v.PostForm)
	if args == nil {
		return t, nil
	}
	wrong, note := v.Options().Tools.Check(v.Context(), t.Server, t.Name, args)
	t.Note = note
	if t.Wrong = wrong; t.Mode == "form" {
		if t.Wrong = t.Form.blame(wrong); len(wrong) > len(t.Wrong) {
			t.Wrong = append([]string{"Some values do not fit."}, t.Wrong...)
		}
	}
	if len(wrong) > 0 {
		return t, nil
	}
	called, err := v.Options().Tools.Call(v.Context(), t.Server, t.Name, args)
	if err != nil {
		return nil, &Problem{http.StatusUnprocessableEntity, "The tool was not called", err.Error(), ""}
	}
	t.Called = &called
	return t, nil
}
