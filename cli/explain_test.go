package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/docs"
)

// TestTopics: every error code and every exit status is explained: what it means, its causes, what to do, an example.
func TestTopics(t *testing.T) {
	list := topics(docs.Errors)
	var got []string
	for _, s := range list {
		got = append(got, s.Name)
		if len(s.Summary) < 20 || len(s.Summary) > 130 {
			t.Errorf("%s: a summary of %d characters: %q", s.Name, len(s.Summary), s.Summary)
		}
		for _, part := range []string{"\nCauses: ", "\nDo: ", "\n```"} {
			if !strings.Contains(s.Text, part) && s.Name != "0" {
				t.Errorf("%s has no part %q", s.Name, strings.TrimSpace(part))
			}
		}
	}
	want := append(constants(t, "../stages/error.go", "Code"), constants(t, "output.go", "exit")...)
	if !slices.Equal(got, want) {
		t.Errorf("explained are\n%q\nwant\n%q", got, want)
	}
}

// constants are the values of the constants of a file whose type is kind, or whose name begins with it.
func constants(t *testing.T, path, kind string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		lit, ok := spec.Values[0].(*ast.BasicLit)
		typed, _ := spec.Type.(*ast.Ident)
		if ok && (typed != nil && typed.Name == kind || strings.HasPrefix(spec.Names[0].Name, kind)) {
			value, err := strconv.Unquote(lit.Value)
			if err != nil {
				value = lit.Value
			}
			values = append(values, value)
		}
		return true
	})
	if len(values) < 7 {
		t.Fatalf("%s: only %q", path, values)
	}
	return values
}
