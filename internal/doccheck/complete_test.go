//go:build unix

package doccheck

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// A field is what the schema of a stage, or of the call, says of one of its members.
type field struct {
	Const            any
	Enum             []any
	Default          any
	Minimum, Maximum json.Number
	MaxLength        json.Number
	Properties       map[string]field
	OneOf            []field
	Defs             map[string]field `json:"$defs"`
}

// TestReferenceIsComplete: the section of each stage has a row for each field, with the values, default and bounds that the
// schema has; and every code that errors.md explains is in the reference.
func TestReferenceIsComplete(t *testing.T) {
	document, codes := read(t, reference), read(t, "docs/errors.md")
	var call field
	if err := json.Unmarshal(schemas.ExecutePipeline(stages.Kinds(), schemas.Options{}), &call); err != nil {
		t.Fatal(err)
	}
	wanting(t, sectionOf(document, "The call"), "", call.Properties)
	for _, stage := range call.Defs["stage"].OneOf {
		kind, _ := stage.Properties["type"].Const.(string)
		text := sectionOf(document, kind)
		if _, maps := stage.Properties["for_each"]; maps {
			text += sectionOf(document, "for_each") // its fields are the same everywhere
		}
		delete(stage.Properties, "type")
		wanting(t, text, kind+": ", stage.Properties)
	}
	for _, heading := range regexp.MustCompile("(?m)^### `([A-Z_]+)`$").FindAllStringSubmatch(codes, -1) {
		if !strings.Contains(sectionOf(document, "Errors"), "`"+heading[1]+"`") {
			t.Errorf("%s does not name the code %s", reference, heading[1])
		}
	}
}

// wanting reports what the rows of a text do not say of fields.
func wanting(t *testing.T, text, of string, fields map[string]field) {
	t.Helper()
	text = strings.ReplaceAll(text, ",", "") // of numbers
	for name, f := range fields {
		row := regexp.MustCompile("(?m)^\\| `" + name + "` \\|.*$").FindString(text)
		if row == "" {
			t.Errorf("%s: %sthere is no row for %q", reference, of, name)
			continue
		}
		words := strings.FieldsFunc(row, func(c rune) bool { return strings.ContainsRune(" |`\";", c) })
		for _, value := range append(f.Enum, f.Default, f.Minimum, f.Maximum, f.MaxLength) {
			encoded, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			if word := strings.Trim(string(encoded), `"`); value != nil && value != json.Number("") && !slices.Contains(words, word) {
				t.Errorf("%s: %sthe row of %q does not say %s", reference, of, name, word)
			}
		}
		for _, form := range f.OneOf {
			wanting(t, text, of+name+".", form.Properties)
		}
	}
}

// sectionOf returns the section with a heading of the second level.
func sectionOf(document, heading string) string {
	_, rest, _ := strings.Cut(document, "\n## "+heading+"\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	return section
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
