package upstream

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tailscale/hujson"
)

// expand returns a value as plain JSON with the variables in its strings replaced. A variable that cannot be is a
// mistake at its own line.
func (e *entry) expand(v hujson.Value, key string) json.RawMessage {
	v = v.Clone()
	e.expandStrings(&v, key)
	v.Standardize()
	return json.RawMessage(strings.TrimSpace(string(v.Pack())))
}

func (e *entry) expandStrings(v *hujson.Value, key string) {
	switch value := v.Value.(type) {
	case hujson.Literal:
		if value.Kind() != '"' || !strings.Contains(value.String(), "$") {
			return
		}
		text, err := e.reader.config.expand(value.String())
		if err != nil {
			e.fail(v.StartOffset, key, "%v", err)
			return
		}
		v.Value = hujson.String(text)
	case *hujson.Object:
		for i := range value.Members {
			e.expandStrings(&value.Members[i].Value, key+"."+nameOf(value.Members[i]))
		}
	case *hujson.Array:
		for i := range value.Elements {
			e.expandStrings(&value.Elements[i], fmt.Sprintf("%s[%d]", key, i))
		}
	}
}

// expand replaces ${VAR}, ${VAR:-default}, ${VAR:?message} and ${env:VAR}, and $$ by $. A bare $VAR stays as it is.
func (c *Config) expand(s string) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(s, "$")
		out.WriteString(before)
		switch {
		case !found:
			return out.String(), nil
		case strings.HasPrefix(rest, "$"):
			out.WriteByte('$')
			s = rest[1:]
		case strings.HasPrefix(rest, "{"):
			inner, after, closed := strings.Cut(rest[1:], "}")
			if !closed {
				return "", fmt.Errorf("${%s has no closing brace", shorten(inner, 40))
			}
			value, err := c.variable(inner)
			if err != nil {
				return "", err
			}
			out.WriteString(value)
			s = after
		default:
			out.WriteByte('$')
			s = rest
		}
	}
}

// variable gives the value of what stands between the braces.
func (c *Config) variable(inner string) (string, error) {
	name, fallback, hasDefault := strings.Cut(inner, ":-")
	name, message, mustBe := strings.Cut(name, ":?")
	switch name {
	case "workspaceFolder":
		return filepath.Abs(filepath.Dir(c.Path))
	case "userHome":
		name = "HOME"
	}
	name = strings.TrimPrefix(name, "env:")
	if id, ok := strings.CutPrefix(name, "input:"); ok {
		return "", fmt.Errorf("${input:%s} asks a person, and nobody is there; use a variable such as ${%s}", id, asVariable(id))
	}
	if name == "" || name != asVariable(name) && strings.ContainsAny(name, ":/. ") {
		return "", fmt.Errorf("${%s} is not understood; want ${VAR}, ${VAR:-default}, ${VAR:?message} or ${env:VAR}", shorten(inner, 40))
	}
	value, ok := "", false
	if c.Lookup != nil {
		value, ok = c.Lookup(name)
	}
	switch {
	case hasDefault && value == "":
		return fallback, nil
	case mustBe && value == "":
		return "", fmt.Errorf("%s: %s", name, message)
	case !ok:
		return "", fmt.Errorf("the variable %s is not set; set it, or write ${%s:-default}", name, name)
	}
	return value, nil
}

// asVariable writes a word as the name of a variable.
func asVariable(word string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		}
		return '_'
	}, word)
}
