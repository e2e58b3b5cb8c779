package ui

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// maxForm bounds the body of a form, in bytes: a pipeline with its data fits.
const maxForm = 4 << 20

// A Visit is a request of a person. Its context has what the sources need to know of the caller.
type Visit struct {
	*http.Request
	Who  Person
	Base string

	console *Console
	w       http.ResponseWriter
	done    bool // the answer leads elsewhere
}

// Options returns the options of the console.
func (v *Visit) Options() *Options { return &v.console.options }

// Header returns the header of the answer.
func (v *Visit) Header() http.Header { return v.w.Header() }

// Viewer returns who asks about runs. The data of runs that are not the person's own needs Results.
func (v *Visit) Viewer() control.Viewer {
	return control.Viewer{
		All: v.Who.Operator, Caller: v.Who.ID, Results: v.Who.Results || !v.Who.Operator, Limited: v.Who.Limited, Groups: v.Who.Groups,
	}
}

// sees refuses a page that is not for the person.
func (v *Visit) sees(p *page) error {
	switch {
	case p.isFor(v.Who):
		return nil
	case p.operators:
		return v.operator()
	}
	return &Problem{http.StatusForbidden, "This page is about all servers", "you may use those of your groups", "ask the operator of the gateway"}
}

// Fragment reports whether only a part of the page is asked for.
func (v *Visit) Fragment() bool { return v.Request.Header.Get("HX-Request") == "true" }

// Notice shows a short text at the edge of the page, after the answer to a form.
func (v *Visit) Notice(format string, args ...any) {
	v.w.Header().Set("HX-Trigger", asciiJSON(map[string]string{"notice": texts.Fit(fmt.Sprintf(format, args...), 300)}))
}

// show answers with a page, or with the part of it that is the target of the request.
func (v *Visit) show(p *page, find func(*Visit) (any, error)) {
	var data any
	err := v.sees(p)
	if err == nil {
		data, err = find(v)
	}
	target := v.Request.Header.Get("HX-Target")
	if p.part != "" {
		target = p.part
	}
	switch {
	case err != nil:
		v.fail(err)
	case v.done:
	case v.Fragment() && p.has(target):
		v.write(http.StatusOK, p, target, data)
	default:
		v.write(http.StatusOK, p, "layout", v.layout(p, data))
	}
}

// act does what a form asks for. Its answer is a part of the page, or leads to the page.
func (v *Visit) act(p *page, a act) {
	v.Body = http.MaxBytesReader(v.w, v.Body, maxForm)
	if err := v.ParseForm(); err != nil {
		v.fail(&Problem{http.StatusRequestEntityTooLarge, "The form cannot be read", err.Error(), "it may have at most " + texts.Bytes(maxForm)})
		return
	}
	if err := v.checkCSRF(); err != nil {
		v.fail(err)
		return
	}
	v.show(p, a.do)
}

// To leads the browser to another page of the console. The data of the handler is not shown then.
func (v *Visit) To(path string) {
	v.done = true
	if v.Fragment() {
		v.w.Header().Set("HX-Redirect", v.Base+path)
		return
	}
	http.Redirect(v.w, v.Request, v.Base+path, http.StatusSeeOther)
}

// JSON answers a script of the page with a value. The data of the handler is not shown then.
func (v *Visit) JSON(value any) (any, error) {
	v.done = true
	v.w.Header().Set("Content-Type", "application/json")
	v.w.Header().Set("Cache-Control", "no-store")
	_, _ = io.WriteString(v.w, texts.JSON(value)) // the browser may have gone
	return nil, nil
}

// write executes a template. Nothing half-written is sent.
func (v *Visit) write(status int, p *page, name string, data any) {
	var b bytes.Buffer
	t, err := p.templates()
	if err == nil {
		err = t.ExecuteTemplate(&b, name, data)
	}
	if err != nil {
		http.Error(v.w, "the page cannot be written: "+err.Error(), http.StatusInternalServerError)
		return
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", "HX-Request, HX-Target")
	v.w.WriteHeader(status)
	_, _ = v.w.Write(b.Bytes()) // the browser may have gone
}

// A Problem is an error for people.
type Problem struct {
	Status int // of HTTP
	Title  string
	Text   string
	Hint   string // what to do
}

// Error implements error.
func (p *Problem) Error() string { return p.Title + ": " + p.Text }

func notFound(path string) *Problem {
	return &Problem{http.StatusNotFound, "There is nothing here", "this console has no page " + texts.Quote(path), "the menu has all pages"}
}

// fail answers with an error: as a page, or as a note beside the page that is open.
func (v *Visit) fail(err error) {
	p, ok := errors.AsType[*Problem](err)
	if !ok {
		p = &Problem{http.StatusInternalServerError, "That did not work", err.Error(), ""}
	}
	problems := v.console.problems
	if v.Fragment() {
		v.w.Header().Set("HX-Retarget", "#notes")
		v.w.Header().Set("HX-Reswap", "afterbegin")
		v.write(p.Status, problems, "note", p)
		return
	}
	layout := "layout"
	if v.Who.ID == "" && !v.Who.Operator { // nobody has signed in, and the layout describes the gateway
		layout = "bare"
	}
	v.write(p.Status, problems, layout, v.layout(problems, p))
}
