package clients

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/upstream/config"
)

// reference matches a value that is only a variable, with a word such as Bearer before it.
var reference = lazy.Regexp(`^(?:[A-Za-z]+ )?\$\{(?:(?:env|input):)?[A-Za-z0-9_-]+\}$`)

// Redact returns a configuration with possible secrets replaced, to be shown. One that cannot be read is hidden as a
// whole.
func Redact(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	root, err := hujson.Parse(data)
	if err != nil {
		return []byte(config.Hidden + "\n")
	}
	hideComments(&root)
	redact(&root, "", false)
	return root.Pack()
}

// Shown is a file of the client with possible secrets replaced, except in the entry of that name.
func (c Client) Shown(path string, data []byte, name string) []byte {
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	if filepath.Ext(path) != ".toml" {
		return Redact(data)
	}
	start, end := tomlEditor{}.block(data, c.keys[0], name)
	hide := func(text []byte) []byte { return tomlText().ReplaceAll(text, []byte(`"`+config.Hidden+`"`)) }
	own := replacer(words(data[start:end])).Replace(string(data[start:end]))
	return slices.Concat(hide(data[:start]), []byte(own), hide(data[end:]))
}

// tomlText matches a string or a comment of TOML.
var tomlText = lazy.Regexp(`(?s)""".*?"""|'''.*?'''|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*`)

// words are the strings of an entry of ours.
func words(block []byte) []string {
	var list []string
	for _, quoted := range tomlText().FindAllString(string(block), -1) {
		list = append(list, strings.Trim(quoted, `"`))
	}
	return list
}

// comment matches one comment.
var comment = lazy.Regexp(`(?s)//[^\n]*|/\*.*?\*/`)

// hideComments hides comments that may hold a setting: people comment out servers, with their secrets.
func hideComments(root *hujson.Value) {
	for v := range root.All() {
		places := []*hujson.Extra{&v.BeforeExtra, &v.AfterExtra}
		switch v := v.Value.(type) {
		case *hujson.Object:
			places = append(places, &v.AfterExtra)
		case *hujson.Array:
			places = append(places, &v.AfterExtra)
		}
		for _, extra := range places {
			if len(*extra) > 0 { // an empty one that is not nil stands for a comma
				*extra = comment().ReplaceAllFunc(*extra, hideComment)
			}
		}
	}
}

func hideComment(text []byte) []byte {
	switch {
	case !bytes.ContainsAny(text, `"'=:`) && !config.IsSecretName(string(text)):
		return text
	case text[1] == '/':
		return []byte("// " + config.Hidden)
	}
	return []byte("/* " + config.Hidden + " */")
}

// redact redacts the value of a member. In headers and variables everything is secret.
func redact(v *hujson.Value, name string, all bool) {
	switch value := v.Value.(type) {
	case *hujson.Object:
		inServer := !slices.Contains([]string{"", "mcpServers", "servers"}, name)
		for i := range value.Members {
			m := &value.Members[i]
			key := m.Name.Value.(hujson.Literal).String() // the parser takes no other name
			redact(&m.Value, key, all || inServer && (key == "env" || key == "headers"))
		}
	case *hujson.Array:
		var words []string
		for _, e := range value.Elements {
			if l, ok := e.Value.(hujson.Literal); ok {
				words = append(words, l.String())
			}
		}
		hide := replacer(words)
		for i := range value.Elements {
			e := &value.Elements[i]
			if l, ok := e.Value.(hujson.Literal); ok && l.Kind() == '"' {
				e.Value = hujson.String(hide.Replace(l.String()))
			}
			redact(e, name, all)
		}
	case hujson.Literal:
		text := value.String()
		secret := all || config.IsSecretName(name) || name == "default" // of an input
		switch {
		case secret && text != "" && (value.Kind() == '0' || value.Kind() == '"' && !reference().MatchString(text)):
			v.Value = hujson.String(config.Hidden)
		case value.Kind() == '"' && !reference().MatchString(text):
			v.Value = hujson.String(replacer([]string{text}).Replace(text))
		}
	}
}

func replacer(args []string) *strings.Replacer {
	var pairs []string
	for _, word := range config.SecretsIn(args...) {
		if !reference().MatchString(word) {
			pairs = append(pairs, word, config.Hidden)
		}
	}
	return strings.NewReplacer(pairs...)
}
