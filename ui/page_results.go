package ui

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// An output is what a stage of a run has produced. It is read in parts, and stays where it is.
type output struct {
	v       *Visit
	request control.OutputRequest
	part    control.OutputPart // that was read last
}

// output opens the output that an address names.
func (v *Visit) output() (*output, error) {
	o := &output{v: v, request: control.OutputRequest{Request: v.PathValue("request"), Stage: int(min(v.number("of"), 1<<20))}}
	part, err := v.Options().Runs.Output(v.Context(), v.Viewer(), o.request)
	if err != nil {
		return nil, problemOf(err)
	}
	o.part = part
	return o, nil
}

// A source is an output, or another text of a known size.
type source interface {
	io.ReaderAt
	Size() int64
}

// Size returns the number of all its bytes.
func (o *output) Size() int64 { return o.part.Size }

// ReadAt implements [io.ReaderAt].
func (o *output) ReadAt(b []byte, from int64) (n int, err error) {
	for n < len(b) {
		at := from + int64(n)
		if at >= o.part.Size {
			return n, io.EOF
		}
		if at < o.part.Offset || at >= o.part.Offset+int64(len(o.part.Data)) {
			o.request.Offset = at
			part, err := o.v.Options().Runs.Output(o.v.Context(), o.v.Viewer(), o.request)
			if err != nil {
				return n, err
			}
			if len(part.Data) == 0 {
				return n, io.ErrUnexpectedEOF
			}
			o.part = part
		}
		n += copy(b[n:], o.part.Data[at-o.part.Offset:])
	}
	return n, nil
}

// Bounds of a result's views.
const (
	textWindow   = 64 << 10 // bytes of a text
	previewChars = 6000
	maxPicture   = 24 << 20 // bytes of JSON
	maxPictures  = 8
	maxRows      = 100
)

func resultsPage() page {
	return page{
		path: "runs/{request}/result", title: "Output", file: "results.html", above: "runs",
		there: func(o *Options) bool { return o.Runs != nil }, show: showResult,
	}
}

// nodesPage opens a value of an output.
func nodesPage() page {
	p := resultsPage()
	p.path, p.part, p.show = "runs/{request}/nodes", "nodes", showNodes
	return p
}

// A ResultView is a result in one of its views.
type ResultView struct {
	Run     string // the address of its page
	Stage   int
	Size    int64
	View    string // text, tree, table, preview or pictures
	Views   []string
	Text    string
	From    int64 // of a window of text
	Next    int64
	Back    int64
	Tree    NodeList
	Grid    *Grid
	Of      string // the member whose values the table shows
	At, End int64  // of the list that the table shows; End 0: the result is a sequence of values

	Pictures []Picture
}

// A Picture is a content block with a picture.
type Picture struct {
	Kind     string
	At, Size int64 // of its data, a JSON string of base64
}

// A NodeList is a window of a tree, with what its links need.
type NodeList struct {
	Run     string
	Stage   int
	At, End int64
	Window  NodeWindow
}

// PageTitle names the window.
func (v *ResultView) PageTitle() string {
	return "Output of " + texts.Fit(strings.TrimPrefix(v.Run, "runs/"), 40)
}

// number returns a number of the query, 0 without one.
func (v *Visit) number(name string) int64 {
	n, err := strconv.ParseInt(v.URL.Query().Get(name), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

func (v *Visit) runAddress() string { return "runs/" + url.PathEscape(v.PathValue("request")) }

func showResult(v *Visit) (any, error) {
	out, err := v.output()
	if err != nil {
		return nil, err
	}
	r := &ResultView{Run: v.runAddress(), Stage: out.request.Stage, Size: out.Size(), Views: []string{"text"}}
	if v.Options().Preview != nil {
		r.Views = append(r.Views, "preview")
	}
	if root, wrong := values(out, 0, out.Size(), 0, 2, maxScalar); wrong == nil && len(root.Nodes) > 0 {
		r.structure(out, root)
	}
	if r.View = v.URL.Query().Get("view"); !slices.Contains(r.Views, r.View) {
		r.View = r.Views[0]
	}
	if read := readers[r.View]; read != nil {
		err = read(v, r, out)
	}
	return r, err
}

// readers read what a view shows, if that is more than every view needs.
var readers = map[string]func(v *Visit, r *ResultView, out source) error{
	"text": func(v *Visit, r *ResultView, out source) error { return r.text(out, min(v.number("from"), out.Size())) },
	"preview": func(v *Visit, r *ResultView, out source) (err error) {
		r.Text, err = v.Options().Preview(v.Context(), io.NewSectionReader(out, 0, out.Size()), previewChars)
		return err
	},
	"table": func(v *Visit, r *ResultView, out source) error {
		return r.rows(out, v.number("from"), int(v.number("first")))
	},
}

// structure finds the views of a result that is JSON.
func (r *ResultView) structure(out source, root NodeWindow) {
	one := root.Nodes[0]
	if len(root.Nodes) > 1 || !one.Holds() {
		r.Tree = NodeList{Run: r.Run, Stage: r.Stage}
		r.Tree.Window, _ = values(out, 0, out.Size(), 0, maxNodes, maxCell) // it has been read before
	} else {
		r.Tree = NodeList{Run: r.Run, Stage: r.Stage, At: one.At, End: one.At + one.Size}
		r.Tree.Window, _ = window(out, one.At, one.At+one.Size, 0, 0, maxNodes, maxCell)
	}
	r.Views = append([]string{"tree"}, r.Views...)
	r.findList()
	if r.rows(out, 0, 0) == nil {
		r.Views = append([]string{"table"}, r.Views...)
	}
	r.findPictures(out, root)
}

// findList finds the list that a table can show: the result itself, or the first list in it.
func (r *ResultView) findList() {
	r.At, r.End = r.Tree.At, r.Tree.End
	if r.Tree.Window.Kind != "object" {
		return
	}
	for _, n := range r.Tree.Window.Nodes {
		if n.Kind == "array" {
			r.Of, r.At, r.End = n.Key, n.At, n.At+n.Size
			return
		}
	}
}

var errNoTable = errors.New("it is no list of objects")

// rows makes the table.
func (r *ResultView) rows(out source, from int64, first int) (err error) {
	var w NodeWindow
	if r.End == 0 {
		w, err = values(out, from, out.Size(), first, maxRows, maxRow)
	} else {
		w, err = window(out, r.At, r.End, from, first, maxRows, maxRow)
	}
	if err != nil || w.Kind == "object" {
		return errNoTable
	}
	ok := false
	if r.Grid, ok = grid(w); !ok {
		return errNoTable
	}
	return nil
}

// pictureKinds are the types of pictures that are shown. SVG is none of them: it is a program, too.
var pictureKinds = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// findPictures finds content blocks with pictures.
func (r *ResultView) findPictures(out source, root NodeWindow) {
	blocks := r.Tree.Window.Nodes
	if r.Tree.Window.Kind == "object" {
		blocks = root.Nodes[:1]
	}
	for _, b := range blocks {
		if b.Kind != "object" || len(r.Pictures) == maxPictures {
			continue
		}
		w, err := window(out, b.At, b.At+b.Size, 0, 0, maxNodes, maxCell)
		var p Picture
		isImage := false
		for _, m := range w.Nodes {
			switch m.Key {
			case "type":
				isImage = m.Text == `"image"`
			case "mimeType":
				p.Kind = textOf(m.whole)
			case "data":
				p.At, p.Size = m.At, m.Size
			}
		}
		if err == nil && isImage && knownPicture(p.Kind) && p.Size > 2 && p.Size <= maxPicture {
			r.Pictures = append(r.Pictures, p)
		}
	}
	if r.Pictures != nil {
		r.Views = append([]string{"pictures"}, r.Views...)
	}
}

// text reads a window of text, which begins and ends between two characters.
func (r *ResultView) text(out source, from int64) error {
	b := make([]byte, min(textWindow, out.Size()-from))
	n, err := out.ReadAt(b, from)
	if b = b[:n]; err != nil && err != io.EOF {
		return err
	}
	for i := 0; from > 0 && i < utf8.UTFMax-1 && len(b) > 0 && !utf8.RuneStart(b[0]); i++ {
		b, from = b[1:], from+1
	}
	end := from + int64(len(b))
	for i := 0; end < out.Size() && i < utf8.UTFMax-1 && !utf8.Valid(b[max(0, len(b)-utf8.UTFMax):]) && len(b) > 1; i++ {
		b, end = b[:len(b)-1], end-1
	}
	r.From, r.Back = from, max(0, from-textWindow)
	if end < out.Size() {
		r.Next = end
	}
	text, _ := texts.Valid(b)
	r.Text = texts.Plain(text, true)
	return nil
}

// showNodes shows what is in a value of an output.
func showNodes(v *Visit) (any, error) {
	if !v.Fragment() {
		v.To(v.runAddress() + "/result")
		return nil, nil
	}
	out, err := v.output()
	if err != nil {
		return nil, err
	}
	list := NodeList{Run: v.runAddress(), Stage: out.request.Stage, At: min(v.number("at"), out.Size()), End: min(v.number("end"), out.Size())}
	from, first := v.number("from"), int(v.number("first"))
	if list.End == 0 {
		list.Window, err = values(out, from, out.Size(), first, maxNodes, maxCell)
	} else {
		list.Window, err = window(out, list.At, list.End, from, first, maxNodes, maxCell)
	}
	if err != nil {
		return nil, &Problem{http.StatusBadRequest, "There is no value at this place", err.Error(), "open the output again"}
	}
	return list, nil
}

func knownPicture(kind string) bool { return slices.Contains(pictureKinds, kind) }
