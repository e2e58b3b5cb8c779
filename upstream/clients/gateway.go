package clients

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// A Gateway is this gateway as an entry of a client: a program that the client starts, or an address.
type Gateway struct {
	Name    string
	Command string
	Args    []string
	URL     string
	Token   string // the variable of the client's environment that holds the token for URL; empty: none is sent
}

// names matches the names that every client accepts for a server.
var names = lazy.Regexp(`^[A-Za-z0-9_-]{1,64}$`)

// A form is how a client writes an entry.
type form struct {
	url   string // the member with an address; empty: the client only starts programs
	http  string // what type says of an address; empty: it is not said
	stdio string // what type says of a program; empty: it is not said
	list  bool   // a program and its arguments are one array
	tools bool   // the tools that are used have to be named
	env   string // how a variable is written in a header, with %s for its name; empty: it cannot be
	token string // the member that names the variable with a token, instead of a header; empty: there is none
}

// A member is one member of an object whose order counts.
type member struct{ name, value string } // the value as JSON, which a string or an array of strings is in TOML too

// headersMember is the name of the member with headers in all clients.
const headersMember = "headers"

// entry is the gateway as the client writes it.
func (f form) entry(g Gateway) []member {
	var list []member
	add := func(name, literal string) { list = append(list, member{name, literal}) }
	kind := f.stdio
	if g.URL != "" {
		kind = f.http
	}
	if kind != "" {
		add("type", texts.JSON(kind))
	}
	switch {
	case g.URL != "":
		add(f.url, texts.JSON(g.URL))
	case f.list:
		add("command", array(slices.Concat([]string{g.Command}, g.Args)))
	default:
		add("command", texts.JSON(g.Command))
		add("args", array(g.Args))
	}
	switch {
	case g.URL == "" || g.Token == "":
	case f.token != "":
		add(f.token, texts.JSON(g.Token))
	default:
		add(headersMember, `{"Authorization": `+texts.JSON("Bearer "+fmt.Sprintf(f.env, g.Token))+"}")
	}
	if f.tools {
		add("tools", array([]string{"*"}))
	}
	return list
}

// array writes strings as JSON, with a space between them.
func array(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = texts.JSON(word)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// own are the names of the members that we write into an entry; members that people add to it stay.
func (f form) own(g Gateway) []string {
	list := []string{"type", "command", "args"}
	switch {
	case f.token != "":
		list = append(list, f.token)
	case g.Token != "": // else people have added them
		list = append(list, headersMember)
	}
	if f.url != "" {
		list = append(list, f.url)
	}
	if f.tools {
		list = append(list, "tools")
	}
	return list
}

// SpeaksHTTP reports whether the client can be given an address.
func (c Client) SpeaksHTTP() bool { return c.form.url != "" }

// NamesToken reports whether the client's file can name a variable that holds a token.
func (c Client) NamesToken() bool { return c.form.env != "" || c.form.token != "" }

// Target is the file that a new server goes into: the first existing one of the user's or the project's, else the first.
func (c Client) Target(p Places, project bool) (string, error) {
	first := ""
	for _, f := range c.filesAt(p) {
		if f.path == "" || f.project != project {
			continue
		}
		if _, err := os.Stat(f.path); err == nil {
			return f.path, nil
		}
		first = cmp.Or(first, f.path)
	}
	switch {
	case first != "":
		return first, nil
	case project:
		return "", fmt.Errorf("%s has no file for one project", c.Title)
	}
	return "", fmt.Errorf("the place of the file of %s is not known: HOME is not set", c.Title)
}

// Snippet is the text to write into a file by hand.
func (c Client) Snippet(path string, g Gateway) ([]byte, error) {
	data, err := c.Add(path, nil, g, false)
	return data.Data, err
}

// An editor changes the text of a file and keeps its other content, layout and comments.
type editor interface {
	// put writes an entry. If there is one already, it changes the members named by own, or the whole entry if own is
	// nil.
	put(old []byte, key, name string, entry []member, own []string, there bool) ([]byte, error)
	// drop removes an entry, and the object that is then empty if empty is set.
	drop(data []byte, key, name string, empty bool) ([]byte, error)
	// adds reports whether the file is the backup with only that entry added or replaced.
	adds(data, backup []byte, key, name string) bool
}

func (c Client) editor(path string) editor {
	if filepath.Ext(path) == ".toml" {
		return tomlEditor{}
	}
	return jsonEditor{}
}

// An Edit is the result of changing a file.
type Edit struct {
	Outcome     string
	Data        []byte // nil: remove the file, which was made for the entry and holds nothing else
	NeedsBackup bool   // more than an entry of ours is changed
}

// ErrTaken is wrapped by the error of a name that another server has.
var ErrTaken = errors.New("the name is taken")

// ErrForm is wrapped by the error of a file that cannot be changed without loss.
var ErrForm = errors.New("that would lose data")

// Add writes the gateway into a file of the client, which may be empty. The caller has checked that the client takes an
// address, or a token, if g has one. Everything else in the file stays as it is, byte for byte. An entry of another server
// with the gateway's name is replaced only on request, and then as a whole: its variables, headers and rights are not for
// the gateway.
func (c Client) Add(path string, old []byte, g Gateway, replace bool) (Edit, error) {
	if !names().MatchString(g.Name) {
		return Edit{}, fmt.Errorf("%q cannot be the name of a server: want up to 64 of A-Z, a-z, 0-9, _ and -", g.Name)
	}
	was, there, err := c.find(path, old, g.Name)
	if err != nil {
		return Edit{}, err
	}
	ours, want, own := c.ours(was, g), c.form.entry(g), c.form.own(g)
	after := merged(was, want, own)
	switch {
	case there && reflect.DeepEqual(was, any(after)):
		return Edit{Outcome: Same, Data: old}, nil
	case there && !replace && !ours:
		return Edit{}, fmt.Errorf("%s: %w: %q is another server there", path, ErrTaken, g.Name)
	case there && !ours:
		own, after = nil, merged(nil, want, nil)
	}
	data, err := c.editor(path).put(old, c.keys[0], g.Name, want, own, there)
	if err == nil {
		err = c.check(path, old, data, g.Name, func(servers map[string]any) { servers[g.Name] = after })
	}
	if err != nil {
		return Edit{}, err
	}
	if there {
		return Edit{Outcome: Replaced, Data: data, NeedsBackup: !ours || len(after) > len(want)}, nil
	}
	return Edit{Outcome: Added, Data: data, NeedsBackup: true}, nil
}

// find looks for an entry in a file.
func (c Client) find(path string, data []byte, name string) (entry any, there bool, err error) {
	servers, _, err := c.servers(path, data)
	entry, there = servers[name]
	return entry, there, err
}

// servers returns the servers in a file, and whether it has an object for them.
func (c Client) servers(path string, data []byte) (servers map[string]any, there bool, err error) {
	if isBlank(data) {
		return nil, false, nil
	}
	root, err := decode(path, data)
	if err != nil {
		return nil, true, fmt.Errorf("%s: %w", path, err)
	}
	v, there := root[c.keys[0]]
	if servers, ok := v.(map[string]any); ok || !there {
		return servers, there, nil
	}
	return nil, true, fmt.Errorf("%s: %s is not an object with servers", path, c.keys[0])
}

// ours reports whether an entry starts this gateway or reaches the one that g does. Any other address is another server's.
func (c Client) ours(was any, g Gateway) bool {
	entry, _ := was.(map[string]any)
	reaches := g.URL != "" && entry[c.form.url] == g.URL && entry["command"] == nil
	return reaches || c.starts(was)
}

// starts reports whether an entry starts this gateway.
func (c Client) starts(entry any) bool {
	return errors.Is((translator{variant: c.variant}).server(entry).Err, errOurs)
}

// merged is an entry with our members and those that others have added to it.
func merged(was any, want []member, own []string) map[string]any {
	old, _ := was.(map[string]any)
	entry := map[string]any{}
	for name, value := range old {
		if !slices.Contains(own, name) {
			entry[name] = value
		}
	}
	for _, m := range want {
		var value any
		_ = json.Unmarshal([]byte(m.value), &value) // it was encoded here
		entry[m.name] = value
	}
	return entry
}

// check compares the content of a file before and after: only the change may differ.
func (c Client) check(path string, old, data []byte, name string, change func(servers map[string]any)) error {
	before, after := map[string]any{}, map[string]any{}
	var err error
	if !isBlank(old) {
		before, err = decode(path, old)
	}
	if err == nil && !isBlank(data) {
		after, err = decode(path, data)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %q cannot be written there (%w)", path, ErrForm, name, err)
	}
	servers, _ := before[c.keys[0]].(map[string]any)
	if servers == nil {
		servers = map[string]any{}
		before[c.keys[0]] = servers
	}
	change(servers)
	if after[c.keys[0]] == nil && len(servers) == 0 {
		delete(before, c.keys[0])
	}
	if !reflect.DeepEqual(before, after) {
		return fmt.Errorf("%s: %w: %q has a form there that only a person can change", path, ErrForm, name)
	}
	return nil
}

// isEmpty reports whether a file has no content.
func (c Client) isEmpty(path string, data []byte) bool {
	text := strings.Join(strings.Fields(string(data)), "")
	return text == "" || text == "{}" && filepath.Ext(path) != ".toml"
}

func isBlank(data []byte) bool {
	return strings.TrimSpace(strings.TrimPrefix(string(data), byteOrderMark)) == ""
}

// Others are the names of the other servers that a client has in a file, and of entries of the gateway with another
// name. has reports whether a server has that name.
func (c Client) Others(path string, data []byte, name string) (others, ours []string, has bool) {
	servers, _, err := c.servers(path, data)
	if err != nil {
		return nil, nil, false
	}
	for _, other := range sortedNames(servers) {
		switch {
		case other == name:
		case c.starts(servers[other]):
			ours = append(ours, other)
		default:
			others = append(others, other)
		}
	}
	_, has = servers[name]
	return others, ours, has
}
