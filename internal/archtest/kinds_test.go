//go:build !race

package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// The table of kinds of stages, the one place where the code may ask which kind a stage is.
const (
	kindsRoom  = "stages"
	kindsTable = "Kinds"
)

// kinds finds comparisons with the name or the Go type of a stage outside the table of kinds, and labels that are taken
// apart: what is particular to a kind is a field of its entry, or of its step.
func kinds(t *tree) []string {
	table := t.kinds()
	if len(table) == 0 {
		return []string{fmt.Sprintf("%s has no function %s with the table of kinds", kindsRoom, kindsTable)}
	}
	var found []string
	for _, p := range t.packages {
		if !t.bound(p.dir) {
			continue
		}
		for _, f := range p.files {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				for _, e := range compared(n) {
					if name := spelled(e); slices.Contains(table, name) {
						found = append(found, fmt.Sprintf("%s compares with the kind of stage %s; give its entry in the table of kinds a field for it", t.at(e.Pos()), name))
					}
				}
				return true
			})
		}
	}
	return found
}

// kinds returns the names in the table of kinds, and the Go types of their stages.
func (t *tree) kinds() (table []string) {
	for _, p := range t.packages {
		for _, f := range p.files {
			for _, decl := range f.ast.Decls {
				if d, ok := decl.(*ast.FuncDecl); ok && p.dir == kindsRoom && d.Name.Name == kindsTable && d.Recv == nil {
					table = append(table, entries(d)...)
				}
			}
		}
	}
	return table
}

func entries(d *ast.FuncDecl) (table []string) {
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Name" {
				table = append(table, spelled(n.Value))
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "new" {
				table = append(table, spelled(n.Args[0]))
			}
		}
		return true
	})
	return table
}

// compared returns the expressions with which a node compares something.
func compared(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			return []ast.Expr{n.X, n.Y}
		}
	case *ast.CaseClause:
		return n.List
	case *ast.TypeAssertExpr:
		return []ast.Expr{n.Type}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.SelectorExpr); ok && strings.HasSuffix(f.Sel.Name, "Prefix") {
			return n.Args
		}
	}
	return nil
}

// spelled returns a quoted string, without the blank of a prefix, or the name of a type.
func spelled(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return strconv.Quote(strings.TrimSuffix(text, " "))
	case *ast.StarExpr:
		return spelled(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}
