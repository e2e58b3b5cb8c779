package ui

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Outputs has the outputs of the caller's own runs, while they are kept.
type Outputs interface {
	// Output opens the output of a stage of a run; 0 is the last stage. Release must be called.
	Output(ctx context.Context, run string, stage int) (Output, error)

	// Preview describes data by its shape.
	Preview(ctx context.Context, data io.Reader, characters int) (string, error)
}

// An Output is what a stage of a run has produced.
type Output struct {
	Data    io.ReaderAt
	Size    int64
	Release func()
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
		path: "results/{run}", title: "Result", file: "results.html", above: "tools",
		there: func(o *Options) bool { return o.Outputs != nil }, show: showResult,
	}
}

// nodesPage opens a value of a result.
func nodesPage() page {
	p := resultsPage()
	p.path, p.part, p.show = "results/{run}/nodes", "nodes", showNodes
	return p
}

// bytesPage sends a part of a result, or all of it.
func bytesPage() page {
	p := resultsPage()
	p.path, p.show = "results/{run}/bytes", sendBytes
	return p
}

// A ResultView is a result in one of its views.
type ResultView struct {
	Run     string
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
func (v *ResultView) PageTitle() string { return "Result of " + texts.Fit(v.Run, 12) }

// offset returns a number of the query, 0 without one.
func (v *Visit) offset(name string) int64 {
	n, err := strconv.ParseInt(v.URL.Query().Get(name), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// output opens the output that an address names.
func (v *Visit) output() (Output, int, error) {
	stage := int(min(v.offset("stage"), 1<<20))
	o, err := v.Options().Outputs.Output(v.Context(), v.PathValue("run"), stage)
	if err != nil {
		return o, stage, &Problem{http.StatusNotFound, "The result is not there any more", err.Error(), "results are kept for a while; call the tool again"}
	}
	return o, stage, nil
}

func showResult(v *Visit) (any, error) {
	out, stage, err := v.output()
	if err != nil {
		return nil, err
	}
	defer out.Release()
	r := &ResultView{Run: v.PathValue("run"), Stage: stage, Size: out.Size, Views: []string{"text", "preview"}}
	if root, wrong := values(out.Data, 0, out.Size, 0, 2, maxScalar); wrong == nil && len(root.Nodes) > 0 {
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
var readers = map[string]func(v *Visit, r *ResultView, out Output) error{
	"text": func(v *Visit, r *ResultView, out Output) error { return r.text(out, min(v.offset("from"), out.Size)) },
	"preview": func(v *Visit, r *ResultView, out Output) (err error) {
		r.Text, err = v.Options().Outputs.Preview(v.Context(), io.NewSectionReader(out.Data, 0, out.Size), previewChars)
		return err
	},
	"table": func(v *Visit, r *ResultView, out Output) error {
		return r.rows(out, v.offset("from"), int(v.offset("first")))
	},
}

// structure finds the views of a result that is JSON.
func (r *ResultView) structure(out Output, root NodeWindow) {
	one := root.Nodes[0]
	if len(root.Nodes) > 1 || !one.Holds() {
		r.Tree = NodeList{Run: r.Run, Stage: r.Stage}
		r.Tree.Window, _ = values(out.Data, 0, out.Size, 0, maxNodes, maxCell) // it has been read before
	} else {
		r.Tree = NodeList{Run: r.Run, Stage: r.Stage, At: one.At, End: one.At + one.Size}
		r.Tree.Window, _ = window(out.Data, one.At, one.At+one.Size, 0, 0, maxNodes, maxCell)
	}
	r.Views = append([]string{"tree"}, r.Views...)
	r.findList(root)
	if r.rows(out, 0, 0) == nil {
		r.Views = append([]string{"table"}, r.Views...)
	}
	r.findPictures(out, root)
}

// findList finds the list that a table can show: the result itself, or the first list in it.
func (r *ResultView) findList(root NodeWindow) {
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
func (r *ResultView) rows(out Output, from int64, first int) (err error) {
	var w NodeWindow
	if r.End == 0 {
		w, err = values(out.Data, from, out.Size, first, maxRows, maxRow)
	} else {
		w, err = window(out.Data, r.At, r.End, from, first, maxRows, maxRow)
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
func (r *ResultView) findPictures(out Output, root NodeWindow) {
	blocks := r.Tree.Window.Nodes
	if r.Tree.Window.Kind == "object" {
		blocks = root.Nodes[:1]
	}
	for _, b := range blocks {
		if b.Kind != "object" || len(r.Pictures) == maxPictures {
			continue
		}
		w, err := window(out.Data, b.At, b.At+b.Size, 0, 0, maxNodes, maxCell)
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
func (r *ResultView) text(out Output, from int64) error {
	b := make([]byte, min(textWindow, out.Size-from))
	n, err := out.Data.ReadAt(b, from)
	if b = b[:n]; err != nil && err != io.EOF {
		return err
	}
	for i := 0; from > 0 && i < utf8.UTFMax-1 && len(b) > 0 && !utf8.RuneStart(b[0]); i++ {
		b, from = b[1:], from+1
	}
	end := from + int64(len(b))
	for i := 0; end < out.Size && i < utf8.UTFMax-1 && !utf8.Valid(b[max(0, len(b)-utf8.UTFMax):]) && len(b) > 1; i++ {
		b, end = b[:len(b)-1], end-1
	}
	r.From, r.Back = from, max(0, from-textWindow)
	if end < out.Size {
		r.Next = end
	}
	r.Text, _ = texts.Valid(bytes.ReplaceAll(b, []byte{0}, []byte("\uFFFD")))
	return nil
}

// showNodes shows what is in a value of a result.
func showNodes(v *Visit) (any, error) {
	if !v.Fragment() {
		v.To("results/" + url.PathEscape(v.PathValue("run")))
		return nil, nil
	}
	out, stage, err := v.output()
	if err != nil {
		return nil, err
	}
	defer out.Release()
	list := NodeList{Run: v.PathValue("run"), Stage: stage, At: min(v.offset("at"), out.Size), End: min(v.offset("end"), out.Size)}
	from, first := v.offset("from"), int(v.offset("first"))
	if list.End == 0 {
		list.Window, err = values(out.Data, from, out.Size, first, maxNodes, maxCell)
	} else {
		list.Window, err = window(out.Data, list.At, list.End, from, first, maxNodes, maxCell)
	}
	if err != nil {
		return nil, &Problem{http.StatusBadRequest, "There is no value at this place", err.Error(), "open the result again"}
	}
	return list, nil
}

// sendBytes sends a picture, decoded, or the whole result as a file.
func sendBytes(v *Visit) (any, error) {
	out, _, err := v.output()
	if err != nil {
		return nil, err
	}
	defer out.Release()
	at, size := min(v.offset("at"), out.Size), v.offset("size")
	v.done = true
	h := v.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="result.txt"`)
	h.Set("Cache-Control", "no-store")
	var in io.Reader = io.NewSectionReader(out.Data, 0, out.Size)
	if size > 0 {
		in = base64.NewDecoder(base64.StdEncoding, io.NewSectionReader(out.Data, at+1, min(size, maxPicture)-2)) // within its quotes
	}
	_, _ = io.Copy(v.w, in) // the browser may have gone
	return nil, nil
}

func knownPicture(kind string) bool { return slices.Contains(pictureKinds, kind) }
