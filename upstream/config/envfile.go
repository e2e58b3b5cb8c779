package config

import (
	"fmt"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// variable matches the name of an environment variable.
var variable = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// parseEnv reads a file of variables: NAME=value lines, with or without "export " before them, values in single quotes
// as they are, in double quotes with \n, \t, \r, \" and \\, or bare up to a comment. Nothing in them is replaced. An
// error names the line and never shows a value.
func parseEnv(path string, data []byte) (map[string]string, error) {
	env := map[string]string{}
	lines := strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if line == "" || line[0] == '#' {
			continue
		}
		at := i + 1
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if name = strings.TrimSpace(name); !ok || !variable().MatchString(name) {
			return nil, fmt.Errorf("%s:%d: want a line NAME=value", path, at)
		}
		value = strings.TrimSpace(value)
		if value != "" && strings.ContainsRune(`"'`, rune(value[0])) {
			for end(value) < 0 && i+1 < len(lines) { // a value may span lines, as keys in PEM do
				i++
				value += "\n" + lines[i]
			}
		}
		plain, err := unquote(value)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", path, at, name, err)
		}
		if strings.ContainsRune(plain, 0) {
			return nil, fmt.Errorf("%s:%d: %s: a variable cannot hold a NUL", path, at, name)
		}
		env[name] = plain
	}
	return env, nil
}

// end is the index of the quote that closes the one at the beginning of text, or -1.
func end(text string) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && text[0] == '"':
			i++
		case text[i] == text[0]:
			return i
		}
	}
	return -1
}

var escapes = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", `\"`, `"`, `\\`, `\`)

func unquote(value string) (string, error) {
	if value == "" || !strings.ContainsRune(`"'`, rune(value[0])) {
		if i := strings.Index(value, " #"); i >= 0 {
			value = value[:i]
		}
		return strings.TrimSpace(value), nil
	}
	at := end(value)
	if at < 0 {
		return "", fmt.Errorf("the quote is not closed")
	}
	if rest := strings.TrimSpace(value[at+1:]); rest != "" && rest[0] != '#' {
		return "", fmt.Errorf("there is more after the closing quote")
	}
	inner := value[1:at]
	if value[0] == '"' {
		inner = escapes.Replace(inner)
	}
	return inner, nil
}
