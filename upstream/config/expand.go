package config

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// maxNesting bounds defaults within defaults.
const maxNesting = 10

// expand returns a value as plain JSON with the variables in its strings replaced. A variable that cannot be replaced is
// a mistake on its own line.
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
		text, err := e.replace(value.String(), 0)
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

// replace replaces variables, and $$ by $. A bare $VAR stays as it is.
func (e *entry) replace(s string, depth int) (string, error) {
	if depth > maxNesting {
		return "", fmt.Errorf("variables are nested more than %d deep", maxNesting)
	}
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
			n := closing(rest)
			if n < 0 {
				return "", fmt.Errorf("${%s has no closing brace", texts.Cut(rest[1:], maxShown))
			}
			value, err := e.variable(rest[1:n], depth)
			if err != nil {
				return "", err
			}
			out.WriteString(value)
			s = rest[n+1:]
		default:
			out.WriteByte('$')
			s = rest
		}
	}
}

// closing is the index of the brace that closes the one at the beginning of s, or -1. Nested braces count only if they
// belong to a variable.
func closing(s string) int {
	open := 0
	for i := range len(s) {
		switch {
		case s[i] == '{' && (i == 0 || s[i-1] == '$'):
			open++
		case s[i] == '}':
			if open--; open == 0 {
				return i
			}
		}
	}
	return -1
}

// variable returns the value of the variable between the braces.
func (e *entry) variable(inner string, depth int) (string, error) {
	scheme, operand, colon := strings.Cut(inner, ":")
	switch {
	case !colon:
	case scheme == "file":
		return e.fileVariable(operand, depth)
	case scheme == "input":
		return e.inputVariable(operand)
	case scheme == "env":
		return e.envVariable(operand, depth)
	}
	if value, ok, err := e.reader.file.placeVariable(inner); ok {
		return value, err
	}
	return e.envVariable(inner, depth)
}

// placeVariable returns the variables that name a place on this machine. They are not secrets.
func (f *File) placeVariable(name string) (value string, ok bool, err error) {
	switch name {
	case "workspaceFolder":
		value, err = f.workspace()
	case "workspaceFolderBasename":
		value, err = f.workspace()
		value = filepath.Base(value)
	case "userHome":
		if value, ok = f.lookup("HOME"); !ok {
			err = fmt.Errorf("${userHome} is the variable HOME, which is not set")
		}
	case "pathSeparator", "/":
		value = string(filepath.Separator)
	default:
		return "", false, nil
	}
	return value, true, err
}

// workspace is the project that a file belongs to: its directory, or the one above if clients keep the file in their
// own.
func (f *File) workspace() (string, error) {
	dir, err := filepath.Abs(filepath.Dir(f.Path))
	if err == nil && slices.Contains([]string{".vscode", ".cursor", ".gemini"}, filepath.Base(dir)) {
		dir = filepath.Dir(dir)
	}
	return dir, err
}

// envVariable returns VAR, VAR:-default and VAR:?message.
func (e *entry) envVariable(operand string, depth int) (string, error) {
	name, fallback, hasDefault := strings.Cut(operand, ":-")
	message, mustBe := "", false
	if !hasDefault {
		name, message, mustBe = strings.Cut(operand, ":?")
	}
	if !variable().MatchString(name) || strings.ContainsAny(name, ".-") {
		return "", fmt.Errorf("${%s} is not understood; want ${VAR}, ${VAR:-default}, ${VAR:?message}, ${env:VAR}, ${file:PATH} or ${input:ID}; a dollar sign itself is $$", texts.Cut(operand, maxShown))
	}
	value, ok := e.reader.file.lookup(name)
	switch {
	case hasDefault && value == "":
		return e.replace(fallback, depth+1)
	case mustBe && value == "":
		if message == "" {
			message = "it must be set"
		}
		return "", fmt.Errorf("%s: %s", name, message)
	case !ok:
		return "", fmt.Errorf("the variable %s is not set; set it, or write ${%s:-default}", name, name)
	}
	if !slices.Contains(public, name) {
		e.secrets.add(value)
	}
	return value, nil
}

func (f *File) lookup(name string) (string, bool) {
	if f.Lookup == nil {
		return "", false
	}
	return f.Lookup(name)
}

// fileVariable returns the text of a file without the line breaks at its end, as containers get secrets.
func (e *entry) fileVariable(operand string, depth int) (string, error) {
	path, err := e.replace(operand, depth+1)
	if err != nil {
		return "", err
	}
	if path == "" {
		return "", fmt.Errorf("${file:} names no file")
	}
	data, err := e.reader.readFile(e.reader.file.resolvePath(path))
	if err != nil {
		return "", fmt.Errorf("${file:%s}: %w", texts.Cut(operand, maxShown), err)
	}
	text := strings.TrimRight(string(data), "\r\n")
	if strings.ContainsRune(text, 0) {
		return "", fmt.Errorf("${file:%s}: the file is not text", texts.Cut(operand, maxShown))
	}
	e.secrets.add(text)
	return text, nil
}

// An input is a value that VS Code asks a person for.
type input struct {
	ID          string  `json:"id"`
	Description string  `json:"description"`
	Default     *string `json:"default"`
}

// inputPrefix begins the variables in which inputs are given.
const inputPrefix = "MCSH_INPUT_"

// readInputs reads the inputs that the file declares.
func (r *reader) readInputs(m hujson.ObjectMember) {
	v := m.Value.Clone()
	v.Standardize()
	if err := json.Unmarshal(v.Pack(), &r.inputs); err != nil {
		r.fail(m.Value.StartOffset, "inputs", `want an array of objects with "id", as VS Code writes them`)
	}
}

// inputVariable returns an input from a variable of the environment, because nobody can be asked here.
func (e *entry) inputVariable(id string) (string, error) {
	name := inputPrefix + asVariable(id)
	if value, ok := e.reader.file.lookup(name); ok {
		e.secrets.add(value)
		return value, nil
	}
	var others []string
	about := ""
	for _, in := range e.reader.inputs {
		switch {
		case in.ID != id:
			others = append(others, in.ID)
		case in.Default != nil:
			return *in.Default, nil
		default:
			about = " (" + texts.Cut(in.Description, maxShown) + ")"
		}
	}
	if near := nearest.Name(id, others); near != "" && about == "" {
		return "", fmt.Errorf("there is no input %q; did you mean ${input:%s}?", id, near)
	}
	about = strings.TrimSuffix(about, " ()")
	return "", fmt.Errorf("${input:%s}%s asks a person, and nobody is there; set the variable %s", texts.Cut(id, maxShown), about, name)
}

// asVariable makes a word the name of a variable.
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
