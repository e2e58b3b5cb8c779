package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// A Gateway is this gateway as an entry of a client: a program that the client starts, or an address.
type Gateway struct {
	Name    string
	Command string
	Args    []string
	URL     string
	Token   string // the variable of the client's environment that holds the token for URL; empty: none is sent
}

// names are what every client takes as the name of a server.
var names = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

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
type member struct {
	name  string
	value any // a string, strings or headers
}

// headers are a member with one header.
type headers struct{ name, value string }

// headersMember is what all clients call it.
const headersMember = "headers"

// entry is the gateway as the client writes it.
func (f form) entry(g Gateway) []member {
	var list []member
	add := func(name string, value any) { list = append(list, member{name, value}) }
	kind := f.stdio
	if g.URL != "" {
		kind = f.http
	}
	if kind != "" {
		add("type", kind)
	}
	switch {
	case g.URL != "":
		add(f.url, g.URL)
		f.addToken(g, add)
	case f.list:
		add("command", append([]string{g.Command}, g.Args...))
	default:
		add("command", g.Command)
		add("args", g.Args)
	}
	if f.tools {
		add("tools", []string{"*"})
	}
	return list
}

// addToken says where the client finds the token.
func (f form) addToken(g Gateway, add func(name string, value any)) {
	switch {
	case g.Token == "":
	case f.token != "":
		add(f.token, g.Token)
	default:
		add(headersMember, headers{"Authorization", "Bearer " + fmt.Sprintf(f.env, g.Token)})
	}
}

// own are the names of the members that an entry of ours may have; those that people add to it stay.
func (f form) own(g Gateway) []string {
	list := []string{"type", "command", "args"}
	switch {
	case f.token != "":
		list = append(list, f.token)
	case g.Token != "": // else they are what people have added
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

// NamesToken reports whether the client can be told of a variable that holds a token.
func (c Client) NamesToken() bool { return c.form.env != "" || c.form.token != "" }

// Target is the file that a new server goes into: of the user's the first that is there, else the first.
func (c Client) Target(p Places, project bool) (string, error) {
	var first string
	of := c
	of.files = slices.DeleteFunc(slices.Clone(c.files), func(name string) bool { return strings.HasPrefix(name, "./") != project })
	for _, path := range of.Files(p) {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		if first == "" {
			first = path
		}
	}
	switch {
	case first != "":
		return first, nil
	case project:
		return "", fmt.Errorf("%s has no file for one project", c.Title)
	}
	return "", fmt.Errorf("there is no place for the file of %s: HOME is not set", c.Title)
}

// Snippet is what to write into a file by hand.
func (c Client) Snippet(path string, g Gateway) ([]byte, error) {
	data, err := c.Add(path, nil, g, false)
	return data.Data, err
}

// An Edit is what becomes of a file.
type Edit struct {
	Outcome string
	Data    []byte // nil: the file is to be removed, because it was made for the entry and nothing else is in it
	Keep    bool   // the file as it was is to be kept beside it: more than an entry of ours is changed
}

// ErrTaken is wrapped by the error of a name that another server has.
var ErrTaken = errors.New("the name is taken")

// ErrForm is wrapped by the error of a file that cannot be changed without losing something in it.
var ErrForm = errors.New("that would lose something")

// Add writes the gateway into a file of the client, which may be empty. Whatever else is in the file stays as it is, byte
// for byte. An entry of another server with the name of the gateway is replaced only if that is asked for, and then as a whole:
// what it says of variables, headers and rights is not for the gateway.
func (c Client) Add(path string, old []byte, g Gateway, replace bool) (Edit, error) {
	switch {
	case !names.MatchString(g.Name):
		return Edit{}, fmt.Errorf("%q cannot be the name of a server: want up to 64 of A-Z, a-z, 0-9, _ and -", g.Name)
	case g.URL != "" && !c.SpeaksHTTP():
		return Edit{}, fmt.Errorf("%s only starts programs; it cannot be given an address", c.Title)
	case g.Token != "" && !c.NamesToken():
		return Edit{}, fmt.Errorf("the file of %s cannot name a variable; it would have to hold the token itself", c.Title)
	}
	was, there, err := c.find(path, old, g.Name)
	if err != nil {
		return Edit{}, err
	}
	ours, want, own := c.ours(was, g), c.form.entry(g), c.form.own(g)
	after := plain(want)
	switch {
	case there && c.same(was, want, g):
		return Edit{Outcome: Same, Data: old}, nil
	case there && !replace && !ours:
		return Edit{}, fmt.Errorf("%s: %w: %q is another server there", path, ErrTaken, g.Name)
	case there && ours:
		after = c.merged(was, want, g)
	case there:
		own = nil
	}
	data, err := c.editor(path).put(old, c.keys[0], g.Name, want, own, there)
	if err == nil {
		err = c.check(path, old, data, g.Name, func(servers map[string]any) { servers[g.Name] = after })
	}
	if err != nil {
		return Edit{}, err
	}
	if there {
		return Edit{Outcome: Replaced, Data: data, Keep: !ours || len(after) > len(plain(want))}, nil
	}
	return Edit{Outcome: Added, Data: data, Keep: true}, nil
}

// find looks for an entry in a file.
func (c Client) find(path string, data []byte, name string) (entry any, there bool, err error) {
	servers, _, err := c.servers(path, data)
	entry, there = servers[name]
	return entry, there, err
}

// servers are those in a file, if there is a place for them.
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

// same reports whether an entry says what ours says. People may have added to it.
func (c Client) same(was any, want []member, g Gateway) bool {
	entry, ok := was.(map[string]any)
	if !ok {
		return false
	}
	wanted := plain(want)
	for _, name := range c.form.own(g) {
		if !reflect.DeepEqual(entry[name], wanted[name]) {
			return false
		}
	}
	return true
}

// ours reports whether an entry starts this gateway or reaches the one that g does. Any other address is another server's.
func (c Client) ours(was any, g Gateway) bool {
	if found := (translator{variant: c.variant}).server(was); errors.Is(found.Err, errOurs) {
		return true
	}
	entry, _ := was.(map[string]any)
	url, isURL := entry[c.form.url].(string)
	return isURL && g.URL != "" && url == g.URL && entry["command"] == nil
}

// merged is an entry with our members and those that others have added.
func (c Client) merged(was any, want []member, g Gateway) map[string]any {
	entry := plain(want)
	old, ok := was.(map[string]any)
	if !ok {
		return entry
	}
	for _, name := range c.form.own(g) {
		delete(old, name)
	}
	for name, value := range entry {
		old[name] = value
	}
	return old
}

// plain is an entry as it is decoded.
func plain(list []member) map[string]any {
	entry := map[string]any{}
	for _, m := range list {
		if h, ok := m.value.(headers); ok {
			entry[m.name] = map[string]any{h.name: h.value}
			continue
		}
		words, isList := m.value.([]string)
		if !isList {
			entry[m.name] = m.value
			continue
		}
		decoded := make([]any, len(words))
		for i, word := range words {
			decoded[i] = word
		}
		entry[m.name] = decoded
	}
	return entry
}

// check compares what a file says before and after: nothing may differ but what change does.
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
		return fmt.Errorf("%s: %w: %q is written there in a form that only people can change", path, ErrForm, name)
	}
	return nil
}

// isEmpty reports whether a file says nothing at all.
func (c Client) isEmpty(path string, data []byte) bool {
	text := strings.Join(strings.Fields(string(data)), "")
	return text == "" || text == "{}" && filepath.Ext(path) != ".toml"
}

func isBlank(data []byte) bool {
	return strings.TrimSpace(strings.TrimPrefix(string(data), byteOrderMark)) == ""
}

// Has reports whether a file has a server of that name.
func (c Client) Has(path string, data []byte, name string) bool {
	_, there, err := c.find(path, data, name)
	return there && err == nil
}

// Others are the names of the servers that a client has in a file beside the gateway, and of entries of the gateway
// with another name than that.
func (c Client) Others(path string, data []byte, name string) (others, ours []string) {
	servers, _, err := c.servers(path, data)
	if err != nil {
		return nil, nil
	}
	for _, other := range sortedNames(servers) {
		switch {
		case other == name:
		case errors.Is((translator{variant: c.variant}).server(servers[other]).Err, errOurs):
			ours = append(ours, other)
		default:
			others = append(others, other)
		}
	}
	return others, ours
}

// quote writes a string as JSON does, which TOML reads too.
func quote(text string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil { // a string can always be encoded
		panic("clients: internal error: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// literal writes the value of a member.
func (m member) literal() string {
	if h, ok := m.value.(headers); ok {
		return "{" + quote(h.name) + ": " + quote(h.value) + "}"
	}
	words, isList := m.value.([]string)
	if !isList {
		return quote(m.value.(string))
	}
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quote(word)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
