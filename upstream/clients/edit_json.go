package clients

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	byteOrderMark = "\xef\xbb\xbf"
	blanks        = " \t\r\n"
)

// errNoObject is the error of a file that holds another value.
var errNoObject = errors.New("want an object with servers")

// jsonEditor edits JSON, with comments and trailing commas if there are any. It changes the syntax tree, which keeps every
// byte of the rest.
type jsonEditor struct{}

func (jsonEditor) put(old []byte, key, name string, entry []member, own []string, there bool) ([]byte, error) {
	d, err := parseJSON(old)
	if err != nil {
		return nil, err
	}
	if there {
		err = d.update(key, name, entry, own)
	} else {
		err = d.insert(key, name, func(indent string) string { return d.object(entry, indent) })
	}
	return d.pack(), err
}

func (jsonEditor) adds(data, backup []byte, key, name string) bool {
	d, err := parseJSON(data)
	before, wrong := parseJSON(backup)
	if err != nil || wrong != nil {
		return false
	}
	_, value, err := d.find(key, name)
	if err != nil {
		return false
	}
	raw := string(d.source[value.StartOffset:value.EndOffset])
	if _, old, missing := before.find(key, name); missing == nil {
		old.Value = hujson.Literal(raw)
	} else if before.insert(key, name, func(string) string { return raw }) != nil {
		return false
	}
	return bytes.Equal(before.pack(), data)
}

func (jsonEditor) drop(data []byte, key, name string, empty bool) ([]byte, error) {
	d, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	servers, _, err := d.find(key, name)
	if err != nil {
		return nil, err
	}
	servers.remove(name)
	if empty && len(servers.Members) == 0 && isBlank(servers.AfterExtra) {
		d.root.remove(key)
	}
	return d.pack(), nil
}

// A document is the syntax tree of a JSON file, with its layout.
type document struct {
	source  []byte // as it was read, without the byte order mark
	tree    hujson.Value
	root    object // of the tree
	mark    string // the byte order mark, if there is one
	newline string // between lines; empty: everything is on one line
	unit    string // of indentation
}

// An object is an object in the tree of a file.
type object struct {
	*hujson.Object
	start int // where it begins in the source
}

// parseJSON reads a file. A blank one is an empty object.
func parseJSON(text []byte) (*document, error) {
	if isBlank(text) {
		text = []byte("{}\n")
	}
	d := &document{unit: "  "}
	if source, ok := bytes.CutPrefix(text, []byte(byteOrderMark)); ok {
		text, d.mark = source, byteOrderMark
	}
	d.source = text
	var err error
	if d.tree, err = parse(text); err != nil {
		return nil, err
	}
	var ok bool
	if d.root, ok = objectOf(&d.tree); !ok {
		return nil, errNoObject
	}
	inside := text[d.tree.StartOffset:d.tree.EndOffset]
	switch {
	case bytes.Contains(inside, []byte("\r\n")):
		d.newline = "\r\n"
	case bytes.Contains(inside, []byte("\n")), len(d.root.Members) == 0:
		d.newline = "\n"
	}
	if len(d.root.Members) > 0 {
		if indent, ok := lastLine(d.root.Members[0].Name.BeforeExtra); ok && indent != "" {
			d.unit = indent
		}
	}
	return d, nil
}

func (d *document) pack() []byte { return append([]byte(d.mark), d.tree.Pack()...) }

func objectOf(v *hujson.Value) (object, bool) {
	o, ok := v.Value.(*hujson.Object)
	return object{o, v.StartOffset}, ok
}

// index finds a member, or returns -1. Of two with one name programs take the last.
func (o object) index(name string) int {
	for i, m := range slices.Backward(o.Members) {
		if key, ok := m.Name.Value.(hujson.Literal); ok && key.String() == name {
			return i
		}
	}
	return -1
}

// servers returns the object with the servers.
func (d *document) servers(key string) (object, error) {
	i := d.root.index(key)
	if i < 0 {
		return object{}, fmt.Errorf("there is no %s", key)
	}
	o, ok := objectOf(&d.root.Members[i].Value)
	if !ok {
		return object{}, fmt.Errorf("%s is not an object", key)
	}
	return o, nil
}

// find returns the object with the servers and the value of one of them.
func (d *document) find(key, name string) (object, *hujson.Value, error) {
	servers, err := d.servers(key)
	if err != nil {
		return servers, nil, err
	}
	i := servers.index(name)
	if i < 0 {
		return servers, nil, fmt.Errorf("%q is not there", name)
	}
	return servers, &servers.Members[i].Value, nil
}

// insert adds a server, and the object for servers if there is none.
func (d *document) insert(key, name string, entry func(indent string) string) error {
	if d.root.index(key) < 0 {
		d.add(d.root, key, func(indent string) string {
			return d.object([]member{{name, entry(indent + d.unit)}}, indent)
		})
		return nil
	}
	servers, err := d.servers(key)
	if err != nil {
		return err
	}
	d.add(servers, name, entry)
	return nil
}

// update changes the members of an entry that are ours, or replaces the whole entry if own is nil.
func (d *document) update(key, name string, entry []member, own []string) error {
	servers, server, err := d.find(key, name)
	if err != nil {
		return err
	}
	o, ok := objectOf(server)
	if !ok || own == nil {
		server.Value = hujson.Literal(d.object(entry, d.indent(servers)))
		return nil
	}
	for _, name := range own {
		value := slices.IndexFunc(entry, func(m member) bool { return m.name == name })
		switch i := o.index(name); {
		case value < 0 && i < 0:
		case value < 0:
			o.remove(name)
		case i < 0:
			d.add(o, name, func(string) string { return entry[value].value })
		default:
			o.Members[i].Value.Value = hujson.Literal(entry[value].value)
		}
	}
	return nil
}

// object writes members as the value of a member of an object with that indentation.
func (d *document) object(members []member, indent string) string {
	before, between, after := "", ", ", ""
	if d.newline != "" {
		before, after = d.newline+indent+d.unit, d.newline+indent
		between = "," + before
	}
	lines := make([]string, len(members))
	for i, m := range members {
		lines[i] = texts.JSON(m.name) + ": " + m.value
	}
	return "{" + before + strings.Join(lines, between) + after + "}"
}

// add adds a member after the last one of an object, and after the comment beside that.
func (d *document) add(o object, name string, value func(indent string) string) {
	indent := d.indent(o)
	before := ""
	if d.newline != "" {
		before = d.newline + indent
	}
	comment := bytes.TrimRight(o.AfterExtra, blanks)
	o.AfterExtra = o.AfterExtra[len(comment):]
	m := hujson.ObjectMember{
		Name:  hujson.Value{Value: hujson.String(name)},
		Value: hujson.Value{BeforeExtra: []byte(" "), Value: hujson.Literal(value(indent))},
	}
	if len(o.Members) == 0 {
		if d.newline != "" && !bytes.Contains(o.AfterExtra, []byte("\n")) {
			o.AfterExtra = slices.Concat([]byte(d.newline+d.lineIndent(o.start)), o.AfterExtra)
		}
	} else if o.Members[len(o.Members)-1].Value.AfterExtra != nil { // a comma follows it
		m.Value.AfterExtra = hujson.Extra{}
	} else if before == "" {
		before = " "
	}
	m.Name.BeforeExtra = append(bytes.Clone(comment), before...)
	o.Members = append(o.Members, m)
}

// remove removes a member, with its line and one comma. Comments stay.
func (o object) remove(name string) {
	i := o.index(name)
	m := o.Members[i]
	o.Members = slices.Delete(o.Members, i, i+1)
	comments := slices.Concat(bytes.TrimRight(m.Name.BeforeExtra, blanks), bytes.TrimRight(m.Value.AfterExtra, blanks))
	if i < len(o.Members) {
		next := &o.Members[i].Name
		next.BeforeExtra = append(comments, next.BeforeExtra...)
		return
	}
	if i > 0 {
		last := &o.Members[i-1].Value
		if m.Value.AfterExtra == nil { // without a trailing comma
			comments = slices.Concat(last.AfterExtra, comments)
			last.AfterExtra = nil
		} else if last.AfterExtra == nil {
			last.AfterExtra = hujson.Extra{}
		}
	} else if len(comments) == 0 && isBlank(o.AfterExtra) {
		o.AfterExtra = nil
	}
	o.AfterExtra = append(comments, o.AfterExtra...)
}

// indent is the indentation of the members of an object.
func (d *document) indent(o object) string {
	if n := len(o.Members); n > 0 {
		if indent, ok := lastLine(o.Members[n-1].Name.BeforeExtra); ok {
			return indent
		}
	}
	return d.lineIndent(o.start) + d.unit
}

// lineIndent is the indentation of the line of the source that an offset is in.
func (d *document) lineIndent(at int) string {
	line := d.source[bytes.LastIndexByte(d.source[:at], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// lastLine returns what follows the last line break, if there is one.
func lastLine(extra []byte) (line string, ok bool) {
	i := bytes.LastIndexByte(extra, '\n')
	return string(extra[i+1:]), i >= 0
}
