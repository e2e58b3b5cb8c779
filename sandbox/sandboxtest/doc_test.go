package sandboxtest_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumented: the tests and the parts of the contract that the package's text names are there, and no number is left
// out.
func TestDocumented(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	contract, err := os.ReadFile("run.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	err = filepath.WalkDir(filepath.Join("..", ".."), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			var text []byte
			text, err = os.ReadFile(path)
			tests.Write(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w+`).FindAllString(string(doc), -1) {
		if !strings.Contains(tests.String(), "\nfunc "+name+"(") {
			t.Errorf("there is no %s", name)
		}
	}
	for _, part := range regexp.MustCompile(`"[a-z ]+"`).FindAllString(string(doc), -1) {
		if !strings.Contains(string(contract), "{"+part+", ") {
			t.Errorf("the contract has no part %s", part)
		}
	}
	for i := 1; i <= 25; i++ {
		if n := strings.Count(string(doc), fmt.Sprintf("\n//\tS%02d  ", i)); n != 1 {
			t.Errorf("S%02d stands there %d times, want once", i, n)
		}
	}
}
