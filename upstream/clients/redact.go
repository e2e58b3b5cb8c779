package clients

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcsh-dev/mcsh/upstream/config"
)

// reference is a value that is nothing but a variable, with a word such as Bearer before it.
var reference = regexp.MustCompile(`^(?:[A-Za-z]+ )?\$\{(?:(?:env|input):)?[A-Za-z0-9_-]+\}$`)

// Redact returns a configuration with what may be secret in it replaced, to be shown. One that cannot be read is not
// shown at all.
func Redact(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	root, err := hujson.Parse(data)
	if err != nil {
		return []byte(config.Hidden + "\n")
	}
	redact(&root, "", false)
	return root.Pack()
}

// Shown is a file of the client with what may be secret in it replaced, but for the entry of that name.
func (c Client) Shown(path string, data []byte, name string) []byte {
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	if filepath.Ext(path) != ".toml" {
		return Redact(data)
	}
	start, end := tomlEditor{}.block(data, c.keys[0], name)
	hide := func(text []byte) []byte { return tomlText.ReplaceAll(text, []byte(`"`+config.Hidden+`"`)) }
	own := replacer(words(data[start:end])).Replace(string(data[start:end]))
	return slices.Concat(hide(data[:start]), []byte(own), hide(data[end:]))
}

// tomlText is a string or a comment of TOML.
var tomlText = regexp.MustCompile(`(?s)""".*?"""|'''.*?'''|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*`)

// words are the strings of an entry of ours.
func words(block []byte) []string {
	var list []string
	for _, quoted := range tomlText.FindAllString(string(block), -1) {
		list = append(list, strings.Trim(quoted, `"`))
	}
	return list
}

// comment is one comment.
var comment = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)

// quietly hides comments that may hold a setting: people leave out a server that way, with its secrets.
func quietly(extra hujson.Extra) hujson.Extra {
	if len(extra) == 0 {
		return extra // one that is not nil stands for a comma
	}
	return comment.ReplaceAllFunc(extra, func(text []byte) []byte {
		switch {
		case !bytes.ContainsAny(text, `"'=:`) && !config.IsTelling(string(text)):
			return text
		case text[1] == '/':
			return []byte("// " + config.Hidden)
		}
		return []byte("/* " + config.Hidden + " */")
	})
}

// redact walks a value, which stands under a name. Below of headers and variables everything is secret.
func redact(v *hujson.Value, name string, all bool) {
	v.BeforeExtra, v.AfterExtra = quietly(v.BeforeExtra), quietly(v.AfterExtra)
	switch value := v.Value.(type) {
	case *hujson.Object:
		value.AfterExtra = quietly(value.AfterExtra)
		for i := range value.Members {
			m := &value.Members[i]
			m.Name.BeforeExtra, m.Name.AfterExtra = quietly(m.Name.BeforeExtra), quietly(m.Name.AfterExtra)
			key, _ := m.Name.Value.(hujson.Literal)
			inServer := !slices.Contains([]string{"", "mcpServers", "servers"}, name)
			redact(&m.Value, key.String(), all || inServer && slices.Contains([]string{"env", "headers"}, key.String()))
		}
	case *hujson.Array:
		value.AfterExtra = quietly(value.AfterExtra)
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
		secret := all || config.IsTelling(name) || name == "default" // of an input
		switch {
		case value.Kind() == '0' && secret:
			v.Value = hujson.String(config.Hidden)
		case value.Kind() != '"' || reference.MatchString(text):
		case text != "" && secret:
			v.Value = hujson.String(config.Hidden)
		default:
			v.Value = hujson.String(replacer([]string{text}).Replace(text))
		}
	}
}

func replacer(args []string) *strings.Replacer {
	var pairs []string
	for _, word := range config.SecretsIn(args...) {
		if !reference.MatchString(word) {
			pairs = append(pairs, word, config.Hidden)
		}
	}
	return strings.NewReplacer(pairs...)
}
