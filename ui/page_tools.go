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
	shownTools = 200 // in a list at once
	maxQuery   = 500 // characters
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
	argsForm
	Called  *Called
	Results bool
}

// PageTitle names the window.
func (t *toolView) PageTitle() string { return t.Name }

// tool returns the page of the tool in an address, with an empty form.
func (v *Visit) tool() (*toolView, error) {
	d, err := v.Options().Tools.Tool(v.Context(), v.PathValue("server"), v.PathValue("tool"))
	if err != nil {
		return nil, &Problem{http.StatusNotFound, "This tool is not there", err.Error(), "its server may have changed; the page Tools has all"}
	}
	at := "tools/" + url.PathEscape(d.Server) + "/" + url.PathEscape(d.Name)
	return &toolView{ToolDetail: d, argsForm: newArgsForm(at, d.Input, d.Example), Results: v.Options().Runs != nil}, nil
}

// Pretty returns a schema in lines.
func (t *toolView) Pretty(raw json.RawMessage) string { return indented(raw) }

func showTool(v *Visit) (any, error) {
	t, err := v.tool()
	if err != nil {
		return nil, err
	}
	t.link(v.URL.Query().Get("args"))
	return t, nil
}

// switchForm shows the arguments in the other mode.
func switchForm(v *Visit) (any, error) {
	t, err := v.tool()
	if err != nil {
		return nil, err
	}
	t.turn(v.PostForm)
	return t, nil
}

// callTool calls the tool with what was entered.
func callTool(v *Visit) (any, error) {
	t, err := v.tool()
	if err != nil {
		return nil, err
	}
	args := t.read(v.PostForm)
	if args == nil || t.refuse(v.Options().Tools.Check(v.Context(), t.Server, t.Name, args)) {
		return t, nil
	}
	called, err := v.Options().Tools.Call(v.Context(), t.Server, t.Name, args)
	if err != nil {
		return nil, &Problem{http.StatusUnprocessableEntity, "The tool was not called", err.Error(), ""}
	}
	t.Called = &called
	return t, nil
}
