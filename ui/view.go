package ui

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/exactjson"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Bounds of a table.
const (
	tableRows    = 100
	tableColumns = 16
	tableCell    = 120 // bytes of a value
)

// An outputView is a window of the output of a run: as text, and what has at most [control.MaxPart] as JSON or a table.
type outputView struct {
	Kind           string // text, json or table
	Kinds          []Fact // the kinds that there are, with their addresses
	Text           string
	From, To, Size int64
	Before, Behind string // addresses of the neighbouring windows
	Columns        []string
	Rows           [][]string
	Left           int // rows or bytes that are not shown
	Link           string
	Problem        string
	Part           string // the part of a page that the addresses are for; empty: they are pages
}

// inPart makes the addresses of a view, which begin with from, those of a part of another page.
func (o *outputView) inPart(part, page, from string) {
	o.Part = part
	move := func(address *string) {
		if rest, ok := strings.CutPrefix(*address, from); ok {
			*address, _, _ = strings.Cut(page+rest, "#")
		}
	}
	move(&o.Before)
	move(&o.Behind)
	for i := range o.Kinds {
		move(&o.Kinds[i].Text)
	}
}

// outputView makes the window of the output that the query asks for; nil: nothing is kept for this person.
func (v *Visit) outputView(r *runView) *outputView {
	if !r.Kept() {
		return nil
	}
	q := v.URL.Query()
	from, _ := strconv.ParseInt(q.Get("from"), 10, 64) // else 0
	view := &outputView{Kind: cmp.Or(q.Get("as"), ""), Link: r.Self + "/output"}
	request := control.OutputRequest{Request: r.Request, Offset: max(0, from)}
	part, err := v.Options().Runs.Output(v.Viewer(), request)
	if err != nil {
		return &outputView{Problem: err.Error()}
	}
	view.Size = part.Size
	whole := from <= 0 && int64(len(part.Data)) == part.Size
	at := func(as string, from int64) string { return fmt.Sprintf("%s?as=%s&from=%d#output", r.Self, as, from) }
	view.Kinds = []Fact{{"text", at("text", 0)}}
	var rows []json.RawMessage
	if whole && len(bytes.TrimSpace(part.Data)) > 0 {
		if rows = jsonValues(part.Data); rows != nil {
			view.Kinds = append(view.Kinds, Fact{"json", at("json", 0)})
			if view.Columns, view.Rows, view.Left = tableOf(rows); view.Columns != nil {
				view.Kinds = append(view.Kinds, Fact{"table", at("table", 0)})
			}
		}
	}
	if !slices.ContainsFunc(view.Kinds, func(k Fact) bool { return k.Name == view.Kind }) {
		view.Kind = view.Kinds[0].Name
	}
	if view.Kind == "json" {
		view.Text, view.Left = indentedValues(rows)
		return view
	}
	if view.Kind == "text" {
		data := part.Data[:min(len(part.Data), outputMost)]
		view.Text, _ = texts.Valid(data)
		view.From, view.To = part.Offset, part.Offset+int64(len(data))
		if view.From > 0 {
			view.Before = at("text", max(0, view.From-outputMost))
		}
		if view.To < view.Size {
			view.Behind = at("text", view.To)
		}
	}
	return view
}

// jsonValues returns the values of a text that is JSON, one after another; nil: it is something else.
func jsonValues(data []byte) (list []json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(data))
	for len(bytes.TrimSpace(data[d.InputOffset():])) > 0 {
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil
		}
		list = append(list, value)
	}
	return list
}

// indentedValues writes values for people, cut to a window.
func indentedValues(list []json.RawMessage) (text string, left int) {
	var b bytes.Buffer
	for i, value := range list {
		if i > 0 {
			b.WriteByte('\n')
		}
		if b.Len() > outputMost || json.Indent(&b, value, "", "  ") != nil {
			break
		}
	}
	text, _ = texts.Valid(b.Bytes())
	short := texts.Cut(text, outputMost)
	return short, len(text) - len(short)
}

// tableOf makes a table of objects: those of one array, those of the only array in one object, or several values.
func tableOf(values []json.RawMessage) (columns []string, rows [][]string, left int) {
	list := values
	if len(values) == 1 {
		list = elements(values[0])
	}
	known := map[string]int{}
	var objects [][]exactjson.Member
	for _, value := range list[:min(len(list), tableRows)] {
		members, err := exactjson.List(value)
		if err != nil {
			return nil, nil, 0
		}
		objects = append(objects, members)
		for _, m := range members {
			if _, there := known[m.Name]; !there && len(columns) < tableColumns {
				known[m.Name] = len(columns)
				columns = append(columns, texts.Fit(m.Name, tableCell))
			}
		}
	}
	for _, members := range objects {
		row := make([]string, len(columns))
		for _, m := range members {
			if at, there := known[m.Name]; there {
				row[at] = cell(m.Value)
			}
		}
		rows = append(rows, row)
	}
	return columns, rows, len(list) - len(rows)
}

// elements returns the elements of an array, or of the only array in an object.
func elements(value json.RawMessage) (list []json.RawMessage) {
	if json.Unmarshal(value, &list) == nil {
		return list
	}
	members, _ := exactjson.List(value)
	for _, m := range members {
		var inner []json.RawMessage
		if json.Unmarshal(m.Value, &inner) != nil || inner == nil {
			continue
		}
		if list != nil {
			return nil
		}
		list = inner
	}
	return list
}

// cell is a value in a table.
func cell(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil && value[0] == '"' {
		return texts.Fit(text, tableCell)
	}
	return texts.Fit(spaced(value), tableCell)
}
