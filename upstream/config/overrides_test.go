package config

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestExpose: expose and overrides are read, and a mistake in them is an error that says what to write.
func TestExpose(t *testing.T) {
	for _, test := range []struct{ members, want, wrong string }{
		{`"expose": true`, `["*"] null`, ""},
		{`"expose": false`, `null null`, ""},
		{`"expose": ["get_*", "x"]`, `["get_*","x"] null`, ""},
		{`"expose": "get_*"`, "", "s.expose: want true, false or an array of patterns of tools, got a string"},
		{`"expose": null`, "", "s.expose: want true, false or an array of patterns of tools, got null"},
		{`"expose": [""]`, "", "s.expose: an empty pattern matches no tool"},
		{`"expose": [1]`, "", "s.expose: want an array of patterns, got an array of something else"},
		{
			`"overrides": {"a": {"name": "b"}, "c": {"description": "", "readOnly": false}}`,
			`null {"a":{"name":"b"},"c":{"description":"","readOnly":false}}`, "",
		},
		{`"overrides": {}`, `null {}`, ""},
		{`"overrides": {"a": {}}`, "", `s.overrides: "a": says nothing; want name, description or readOnly`},
		{`"overrides": {"a": {"nam": "b"}}`, "", `s.overrides: "a": unknown key "nam"; did you mean "name"?`},
		{`"overrides": {"a": {"name": 5}}`, "", `s.overrides: "a": name cannot be a number`},
		{`"overrides": {"a": {"Name": "b"}}`, "", `unknown key "Name"; did you mean "name"?`},
		{`"overrides": {"a": "b"}`, "", `s.overrides: "a": want an object with name, description, readOnly, got a string`},
		{`"overrides": ["a"]`, "", `got an array of something else`},
		{`"overrides": null`, "", `got null`},
		{`"overrides": {"a": {"name": "x/y"}}`, "", `"a": "x/y" cannot be the name of a tool: want up to 128 bytes on one line, without a slash`},
		{`"overrides": {"a": {"name": " "}}`, "", `cannot be the name of a tool`},
		{`"overrides": {"a": {"name": "x\n"}}`, "", `cannot be the name of a tool`},
		{`"overrides": {"a": {"name": "` + strings.Repeat("x", 129) + `"}}`, "", `cannot be the name of a tool`},
		{`"overrides": {"b": {"name": "x"}, "a": {"name": "x"}}`, "", `s.overrides: "a" and "b" have the same name, "x": want different ones`},
	} {
		servers, err := testFile(&txtar.Archive{Files: []txtar.File{{Name: "mcp.json", Data: []byte(`{"mcpServers":{"s":{"command":"x",` + test.members + `}}}`)}}}).Servers(t.Context())
		switch {
		case test.wrong != "":
			if err == nil || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%s: got %v, want %s", test.members, err, test.wrong)
			}
		case err != nil:
			t.Errorf("%s: %v", test.members, err)
		default:
			expose, _ := json.Marshal(servers[0].Expose)
			overrides, _ := json.Marshal(servers[0].Overrides)
			if d := cmp.Diff(test.want, string(expose)+" "+string(overrides)); d != "" {
				t.Errorf("%s: %s", test.members, d)
			}
		}
	}
}
