package config

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestDocs: docs/configuration.md names every key, and no other.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for key, f := range fields {
		named := regexp.MustCompile("`" + key + "`").Match(text)
		if !named && f.refuse == "" && key != "enabled" && key != "transport" && key != "transportType" {
			t.Errorf("the page does not name %q", key)
		}
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-zA-Z]+)` \\| (programs|HTTP|both|built in|all) \\|").FindAllSubmatch(text, -1)
	var named []string
	for _, row := range rows {
		named = append(named, string(row[1]))
	}
	slices.Sort(named)
	if want := offered(); !slices.Equal(named, want) {
		t.Errorf("the table has %v, messages offer %v", named, want)
	}
}
