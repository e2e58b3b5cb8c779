//go:build !race

package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testName     = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*`)
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
)

// TestNamedTests: every test that SECURITY.md and ARCHITECTURE.md name exists.
func TestNamedTests(t *testing.T) {
	root := filepath.Join("..", "..")
	exists := map[string]bool{}
	err := filepath.WalkDir(root, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		source, err := os.ReadFile(name)
		for _, m := range testFunction.FindAllSubmatch(source, -1) {
			exists[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for file, least := range map[string]int{"SECURITY.md": 50, pageName: 5} {
		page, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		named := testName.FindAllString(string(page), -1)
		if len(named) < least {
			t.Errorf("%s names %d tests; where are the others?", file, len(named))
		}
		for _, name := range named {
			if !exists[name] {
				t.Errorf("%s names %s, which does not exist", file, name)
			}
		}
	}
}
