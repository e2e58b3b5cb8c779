package stages

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
)

// acts reports whether stages, also those within them, may call or write something. A text somewhere else that reads like
// the type of such a stage counts as one.
func acts(list List) bool {
	var names []string
	for _, k := range Kinds() {
		if k.Acts {
			names = append(names, k.Name)
		}
	}
	for _, raw := range list {
		// Nearly all pipelines need no closer look.
		written := func(name string) bool { return bytes.Contains(raw, []byte(name)) }
		if slices.ContainsFunc(names, func(name string) bool { return plain(raw, name) }) {
			return true
		}
		if (slices.ContainsFunc(names, written) || written(`\u`)) && holdsText(raw, names) {
			return true
		}
	}
	return false
}

// plain reports whether a text without escapes is a string in a JSON value, at the first place where it may be one: in a
// longer string, a backslash stands before one of its quotes.
func plain(raw json.RawMessage, text string) bool {
	i := bytes.Index(raw, []byte(`"`+text+`"`))
	return i > 0 && raw[i-1] != '\\'
}

// holdsText reports whether one of texts is a string in a JSON value. What is no JSON is refused elsewhere.
func holdsText(raw json.RawMessage, texts []string) bool {
	d := json.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := d.Token()
		if err != nil {
			return err != io.EOF
		}
		if text, ok := token.(string); ok && slices.Contains(texts, text) {
			return true
		}
	}
}
