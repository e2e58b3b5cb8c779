package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/costtest"
)

func TestMembers(t *testing.T) {
	for _, test := range []struct{ text, want, wrong string }{
		{`{"mcpServers": {}}`, "1 mcpServers {}; ", ""},
		{"{\n// a comment\n\"sandbox\": {\n\"a\": [1,], /* and another */},\n}", `3 sandbox {"a":[1]}; 4 sandbox.a [1]; `, ""},
		{`{"sandbox": true, "sandbox": {}}`, "1 sandbox true; 1 sandbox {}; ", ""},
		{`[]`, "", ""},
		{"{\n\"sandbox\": {", "", ":2:"},
	} {
		path := filepath.Join(t.TempDir(), "mcp.json")
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		var list func(prefix string, members []Member)
		list = func(prefix string, members []Member) {
			for _, m := range members {
				fmt.Fprintf(&got, "%s %s %s; ", strings.TrimPrefix(m.Place(), path+":"), prefix+m.Name, m.JSON())
				below, _ := m.Members()
				list(prefix+m.Name+".", below)
			}
		}
		members, err := (&File{Path: path}).Members(t.Context())
		list("", members)
		if got.String() != test.want || test.wrong == "" && err != nil || test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)) {
			t.Errorf("%s: got %q, %v, want %q, %q", test.text, got.String(), err, test.want, test.wrong)
		}
	}
	if _, err := (&File{Path: "none.json"}).Members(t.Context()); err == nil || !strings.Contains(err.Error(), "there is no file none.json") {
		t.Errorf("a missing file: got %v", err)
	}
}

// TestManyMembers: the work grows with the file, not with its square.
func TestManyMembers(t *testing.T) {
	const many = 200_000
	data := []byte("{" + strings.Repeat("\"\":0,\n", many) + "}")
	f := &File{Path: "mcp.json", ReadFile: func(string) ([]byte, error) { return data, nil }}
	costtest.Run(t, func() {
		members, err := f.Members(t.Context())
		if err != nil || len(members) != many || members[many-1].Place() != fmt.Sprint("mcp.json:", many) {
			t.Errorf("got %d members, %v, want %d", len(members), err, many)
		}
	})
}

// TestOthers: the reader of other members is asked at each reading, and its error is one of the file.
func TestOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, []byte(`{"mcpServers": {"a": {"comand": "x"}}, "mine": 5}`), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &File{Path: path, Others: func(members []Member) error {
		return errors.New(members[1].Place() + ": mine: " + string(members[1].JSON()))
	}}
	for range 2 {
		if _, err := f.Servers(t.Context()); err == nil || !strings.Contains(err.Error(), "comand") || !strings.Contains(err.Error(), path+":1: mine: 5") {
			t.Errorf("got %v, want both mistakes", err)
		}
	}
}
