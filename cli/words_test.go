//go:build !race

package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// prose are words after the name of the program that say something of it.
var prose = []string{"and", "calls", "checks", "has", "is", "registers", "runs"}

var (
	inText = regexp.MustCompile(`\bmcsh ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?`)
	inCode = regexp.MustCompile("(?:`|\\$ )mcsh ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?")
)

// Every command that a hint, a text for agents or a document names is one that the program has.
func TestNamedCommands(t *testing.T) {
	t.Parallel()
	root := (&program{}).root()
	seen := 0
	check := func(where string, mentions [][]string) {
		for _, m := range mentions {
			seen++
			if !hasCommand(root, m[1], m[2]) {
				t.Errorf("%s names %q, and there is no such command", where, m[0])
			}
		}
	}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{"testdata", "bench", "node_modules"}, d.Name()) || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 {
				return filepath.SkipDir
			}
			return nil
		}
		switch {
		case strings.HasSuffix(path, ".md"):
			text, err := os.ReadFile(path)
			for line := range strings.Lines(string(text)) {
				check(path, inCode.FindAllStringSubmatch(line, -1))
			}
			return err
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			literals, err := stringsIn(path)
			for _, text := range literals {
				check(path, slices.DeleteFunc(inText.FindAllStringSubmatch(text, -1), func(m []string) bool { return slices.Contains(prose, m[1]) }))
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 20 {
		t.Errorf("only %d commands are named anywhere", seen)
	}
	if hasCommand(root, "nurse", "") || hasCommand(root, "tools", "lst") || !hasCommand(root, "tools", "ls") {
		t.Error("the test does not know the commands")
	}
}

// hasCommand reports whether there is a command, and one below it where it has such and takes nothing else. Commands
// that cobra adds when it runs are there, and the worker, which is no command for people.
func hasCommand(root *cobra.Command, name, below string) bool {
	if slices.Contains([]string{workerCommand, "completion", "help"}, name) {
		return true
	}
	at := slices.IndexFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
	if at < 0 {
		return false
	}
	inner := root.Commands()[at].Commands()
	return below == "" || len(inner) == 0 || slices.ContainsFunc(inner, func(c *cobra.Command) bool { return c.Name() == below })
}

// stringsIn returns the string literals of a Go file.
func stringsIn(path string) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var list []string
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				list = append(list, text)
			}
		}
		return true
	})
	return list, nil
}
