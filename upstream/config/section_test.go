package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSection(t *testing.T) {
	for _, test := range []struct{ text, want, place, wrong string }{
		{`{"mcpServers": {}}`, "", "", ""},
		{"{\n// a comment\n\"sandbox\": {\"a\": [1,], /* and another */},\n}", `{"a":[1]}`, ":3", ""},
		{`{"sandbox": true}`, "true", ":1", ""},
		{`[]`, "", "", ""},
		{`{"sandbox": {}, "sandbox": {}}`, "", "", "sandbox: it is there twice, first at "},
		{"{\n\"sandbox\": {", "", "", ":2:"},
	} {
		path := filepath.Join(t.TempDir(), "mcp.json")
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, place, err := (&File{Path: path}).Section(t.Context(), "sandbox")
		if test.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%s: got %v, want %q", test.text, err, test.wrong)
			}
			continue
		}
		if test.place != "" {
			test.place = path + test.place
		}
		if dense := strings.Join(strings.Fields(string(got)), ""); err != nil || dense != test.want || place != test.place {
			t.Errorf("%s: got %s at %q, %v, want %s at %q", test.text, dense, place, err, test.want, test.place)
		}
	}
	if _, _, err := (&File{Path: "none.json"}).Section(t.Context(), "sandbox"); err == nil || !strings.Contains(err.Error(), "there is no file none.json") {
		t.Errorf("a missing file: got %v", err)
	}
}
