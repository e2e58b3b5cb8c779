package clients

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

const byteOrderMark = "\xef\xbb\xbf"

// An editor changes the text of a file and nothing but what it is told to: layout and comments are people's.
type editor interface {
	// put writes an entry. Of one that is there already it changes its own members, or without any of them all.
	put(old []byte, key, name string, entry []member, own []string, there bool) ([]byte, error)
	// drop takes an entry out, and with empty also the object that is empty then. It gives the backup where nothing but
	// the entry has been added to it.
	drop(data, backup []byte, key, name string, empty bool) ([]byte, error)
	// alike reports whether two files that have an entry of that name differ only in it.
	alike(a, b []byte, key, name string) bool
}

func (c Client) editor(path string) editor {
	if filepath.Ext(path) == ".toml" {
		return tomlEditor{}
	}
	return jsonEditor{}
}

// jsonEditor edits JSON, with comments and trailing commas where there are any.
type jsonEditor struct{}

func (jsonEditor) put(old []byte, key, name string, entry []member, own []string, there bool) ([]byte, error) {
	if isBlank(old) {
		old = []byte("{}\n")
	}
	d, err := parseJSON(old)
	if err != nil {
		return nil, err
	}
	if !there {
		return d.insert(key, name, func(indent string) string { return d.object(entry, indent) })
	}
	if own == nil {
		return d.overwrite(key, name, entry)
	}
	return d.update(key, name, entry, own)
}

func (jsonEditor) alike(a, b []byte, key, name string) bool {
	var rest [2][]byte
	for i, text := range [][]byte{a, b} {
		d, err := parseJSON(text)
		if err != nil {
			return false
		}
		servers, err := d.find(key)
		at := servers.index(name)
		if err != nil || at < 0 {
			return false
		}
		value := servers.members[at].Value
		rest[i] = d.splice(value.StartOffset, value.EndOffset, "\x00") // which no JSON holds
	}
	return bytes.Equal(rest[0], rest[1])
}

func (jsonEditor) drop(data, backup []byte, key, name string, empty bool) ([]byte, error) {
	d, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	servers, err := d.find(key)
	if err != nil {
		return nil, err
	}
	i := servers.index(name)
	if i < 0 {
		return nil, fmt.Errorf("%q is not there", name)
	}
	value := servers.members[i].Value
	raw := string(d.text[value.StartOffset:value.EndOffset])
	if before, err := parseJSON(backup); err == nil {
		if again, err := before.insert(key, name, func(string) string { return raw }); err == nil && bytes.Equal(again, data) {
			return backup, nil
		}
	}
	text := d.remove(servers, i)
	if !empty {
		return text, nil
	}
	if d, err = parseJSON(text); err != nil {
		return nil, err
	}
	if servers, err = d.find(key); err == nil && len(servers.members) == 0 && isBlank(servers.extra) {
		root := d.root()
		return d.remove(root, root.index(key)), nil
	}
	return text, nil
}

// A jsonText is the text of a JSON file, and what it says.
type jsonText struct {
	text    []byte
	tree    hujson.Value
	mark    int    // the length of the byte order mark, which offsets do not count
	newline string // between lines; empty: everything is on one line
	unit    string // of indentation
}

// An object is one of a file.
type object struct {
	members    []hujson.ObjectMember
	extra      []byte // before the closing brace
	start, end int    // of its text, with the braces
}

func parseJSON(text []byte) (*jsonText, error) {
	d := &jsonText{text: text, unit: "  "}
	if bytes.HasPrefix(text, []byte(byteOrderMark)) {
		d.mark = len(byteOrderMark)
	}
	tree, err := hujson.Parse(text[d.mark:])
	if err != nil {
		return nil, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if _, ok := tree.Value.(*hujson.Object); !ok {
		return nil, fmt.Errorf("want an object with servers")
	}
	d.tree = tree
	d.text = text[d.mark:]
	inside := d.text[tree.StartOffset:tree.EndOffset]
	switch {
	case bytes.Contains(inside, []byte("\r\n")):
		d.newline = "\r\n"
	case bytes.Contains(inside, []byte("\n")), len(d.root().members) == 0:
		d.newline = "\n"
	}
	if root := d.root(); len(root.members) > 0 {
		if _, indent, ok := lastLine(root.members[0].Name.BeforeExtra); ok && indent != "" {
			d.unit = indent
		}
	}
	return d, nil
}

func objectOf(v hujson.Value) (object, bool) {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return object{}, false
	}
	return object{o.Members, o.AfterExtra, v.StartOffset, v.EndOffset}, true
}

func (d *jsonText) root() object {
	o, _ := objectOf(d.tree)
	return o
}

// index finds a member, or gives -1. Of two with one name programs take the last.
func (o object) index(name string) int {
	for i, m := range slices.Backward(o.members) {
		if key, ok := m.Name.Value.(hujson.Literal); ok && key.String() == name {
			return i
		}
	}
	return -1
}

// find returns the object with the servers.
func (d *jsonText) find(key string) (object, error) {
	root := d.root()
	i := root.index(key)
	if i < 0 {
		return object{}, fmt.Errorf("there is no %s", key)
	}
	o, ok := objectOf(root.members[i].Value)
	if !ok {
		return object{}, fmt.Errorf("%s is not an object", key)
	}
	return o, nil
}

// insert adds a server, and the object for servers where there is none.
func (d *jsonText) insert(key, name string, entry func(indent string) string) ([]byte, error) {
	if root := d.root(); root.index(key) < 0 {
		return d.add(root, func(indent string) string {
			if d.newline == "" {
				return quote(key) + ": {" + quote(name) + ": " + entry("") + "}"
			}
			inner := indent + d.unit
			return quote(key) + ": {" + d.newline + inner + quote(name) + ": " + entry(inner) + d.newline + indent + "}"
		}), nil
	}
	servers, err := d.find(key)
	if err != nil {
		return nil, err
	}
	return d.add(servers, func(indent string) string { return quote(name) + ": " + entry(indent) }), nil
}

// overwrite puts an entry in the place of another.
func (d *jsonText) overwrite(key, name string, entry []member) ([]byte, error) {
	servers, err := d.find(key)
	if err != nil {
		return nil, err
	}
	was := servers.members[servers.index(name)].Value
	return d.splice(was.StartOffset, was.EndOffset, d.object(entry, d.indent(servers))), nil
}

// update changes the members of an entry that are ours.
func (d *jsonText) update(key, name string, entry []member, own []string) ([]byte, error) {
	for _, other := range own {
		value := slices.IndexFunc(entry, func(m member) bool { return m.name == other })
		servers, err := d.find(key)
		if err != nil {
			return nil, err
		}
		server := servers.members[servers.index(name)].Value
		o, ok := objectOf(server)
		if !ok {
			return d.splice(server.StartOffset, server.EndOffset, d.object(entry, d.indent(servers))), nil
		}
		text := append([]byte(byteOrderMark)[:d.mark], d.text...)
		switch i := o.index(other); {
		case value < 0 && i < 0:
		case value < 0:
			text = d.remove(o, i)
		case i < 0:
			text = d.add(o, func(string) string { return quote(other) + ": " + entry[value].literal() })
		default:
			was := o.members[i].Value
			text = d.splice(was.StartOffset, was.EndOffset, entry[value].literal())
		}
		if d, err = parseJSON(text); err != nil {
			return nil, err
		}
	}
	return append([]byte(byteOrderMark)[:d.mark], d.text...), nil
}

// object writes an entry as a member of an object with that indentation.
func (d *jsonText) object(entry []member, indent string) string {
	before, between, after := "", ", ", ""
	if d.newline != "" {
		before, after = d.newline+indent+d.unit, d.newline+indent
		between = "," + before
	}
	lines := make([]string, len(entry))
	for i, m := range entry {
		lines[i] = quote(m.name) + ": " + m.literal()
	}
	return "{" + before + strings.Join(lines, between) + after + "}"
}

// add writes a member behind the last one of an object, after the comment that may stand beside that.
func (d *jsonText) add(o object, member func(indent string) string) []byte {
	indent := d.indent(o)
	before := ""
	if d.newline != "" {
		before = d.newline + indent
	}
	told := len(bytes.TrimRight(o.extra, " \t\r\n"))
	at := o.end - 1 - len(o.extra) + told
	if len(o.members) == 0 {
		after := ""
		if d.newline != "" && !bytes.ContainsAny(o.extra[told:], "\n") {
			after = d.newline + d.lineIndent(o.start)
		}
		return d.splice(at, at, before+member(indent)+after)
	}
	last := o.members[len(o.members)-1].Value
	if last.AfterExtra != nil { // there is a comma behind it
		return d.splice(at, at, before+member(indent)+",")
	}
	if before == "" {
		before = " "
	}
	comma := last.EndOffset
	text := d.splice(at, at, before+member(indent))
	return slices.Insert(text, d.mark+comma, ',')
}

// remove takes a member out, with its line and one comma. Comments stay.
func (d *jsonText) remove(o object, i int) []byte {
	m := o.members[i]
	told := bytes.TrimRight(m.Name.BeforeExtra, " \t\r\n")
	start := m.Name.StartOffset - len(m.Name.BeforeExtra) + len(told)
	last := i == len(o.members)-1
	if len(o.members) == 1 && len(told) == 0 && isBlank(m.Value.AfterExtra) && isBlank(o.extra) {
		return d.splice(o.start+1, o.end-1, "")
	}
	if !last || m.Value.AfterExtra != nil {
		comma := m.Value.EndOffset + len(m.Value.AfterExtra)
		return d.splice(start, comma+1, strings.TrimRight(string(m.Value.AfterExtra), " \t\r\n"))
	}
	text := d.splice(start, m.Value.EndOffset, "")
	if i == 0 {
		return text
	}
	before := o.members[i-1].Value
	comma := d.mark + before.EndOffset + len(before.AfterExtra)
	return slices.Delete(text, comma, comma+1)
}

// splice replaces a part of the text.
func (d *jsonText) splice(start, end int, with string) []byte {
	return slices.Concat([]byte(byteOrderMark)[:d.mark], d.text[:start], []byte(with), d.text[end:])
}

// indent is that of the members of an object.
func (d *jsonText) indent(o object) string {
	if n := len(o.members); n > 0 {
		if _, indent, ok := lastLine(o.members[n-1].Name.BeforeExtra); ok {
			return indent
		}
	}
	return d.lineIndent(o.start) + d.unit
}

// lineIndent is the indentation of the line that an offset is in.
func (d *jsonText) lineIndent(at int) string {
	line := d.text[bytes.LastIndexByte(d.text[:at], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// lastLine splits at the last line break.
func lastLine(extra []byte) (before, line string, ok bool) {
	i := bytes.LastIndexByte(extra, '\n')
	if i < 0 {
		return "", "", false
	}
	return string(extra[:i]), string(extra[i+1:]), true
}
