//go:build !race

package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

const (
	maxFile     = 600 // lines of a file
	maxFunction = 50  // lines of code of a function, those of composite literals not counted
)

// documents checks that every package and every exported identifier has a comment.
func documents(t *tree) []string {
	var found []string
	for _, p := range t.packages {
		start := "Package " + p.name + " "
		if p.name == "main" {
			start = "Command "
		}
		if !slices.ContainsFunc(p.files, func(f *file) bool { return f.ast.Doc != nil && strings.HasPrefix(f.ast.Doc.Text(), start) }) {
			found = append(found, fmt.Sprintf("%s has no package comment that begins with %q", p.dir, start))
		}
		if p.name == "main" {
			continue
		}
		for _, f := range p.files {
			for _, decl := range f.ast.Decls {
				for _, name := range undocumented(decl) {
					found = append(found, fmt.Sprintf("%s: %s is exported and has no comment", t.at(name.Pos()), name.Name))
				}
			}
		}
	}
	return found
}

// plain are methods that every reader knows, by the interfaces of the standard library.
var plain = []string{"Error", "String", "Unwrap"}

// undocumented returns the exported names of a declaration that have no comment.
func undocumented(decl ast.Decl) []*ast.Ident {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && (d.Recv == nil || receiver(d).IsExported() && !slices.Contains(plain, d.Name.Name)) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		var names []*ast.Ident
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if d.Doc == nil && s.Doc == nil && s.Name.IsExported() {
					names = append(names, s.Name)
				}
			case *ast.ValueSpec:
				if d.Doc == nil && s.Doc == nil && s.Comment == nil && s.Names[0].IsExported() {
					names = append(names, s.Names[0])
				}
			}
		}
		return names
	}
	return nil
}

// receiver returns the name of the type that a method belongs to.
func receiver(d *ast.FuncDecl) *ast.Ident {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x
		default:
			return ast.NewIdent("_")
		}
	}
}

// sizes checks the lengths of files and functions.
func sizes(t *tree) []string {
	var found []string
	for _, p := range t.packages {
		for _, f := range p.files {
			if f.generated() {
				continue
			}
			if n := len(f.lines); n > maxFile {
				found = append(found, fmt.Sprintf("%s has %d lines, more than %d; split it by subject", f.path, n, maxFile))
			}
			for _, decl := range f.ast.Decls {
				if d, ok := decl.(*ast.FuncDecl); ok && d.Body != nil {
					if n := t.codeLines(f, d.Body); n > maxFunction {
						found = append(found, fmt.Sprintf("%s: %s has %d lines of code, more than %d", t.at(d.Pos()), d.Name.Name, n, maxFunction))
					}
				}
			}
		}
	}
	return found
}

// codeLines counts the lines of a body that are neither empty, nor a comment, nor inside of a composite literal.
func (t *tree) codeLines(f *file, body *ast.BlockStmt) int {
	table := map[int]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok {
			for line := t.line(lit.Lbrace) + 1; line <= t.line(lit.Rbrace); line++ {
				table[line] = true
			}
		}
		return true
	})
	n := 0
	for line := t.line(body.Lbrace) + 1; line < t.line(body.Rbrace); line++ {
		text := bytes.TrimSpace(f.lines[line-1])
		if len(text) > 0 && !bytes.HasPrefix(text, []byte("//")) && !table[line] {
			n++
		}
	}
	return n
}

// forbidden are functions of the standard library with the folders that may call them, besides the free ones.
var forbidden = []struct {
	pkg, names string
	rooms      []string
	instead    string
}{
	{"os", "Getenv LookupEnv Environ ExpandEnv Setenv Unsetenv", nil, "read the environment in cli and pass the setting down"},
	{"fmt", "Print Printf Println", []string{"gateway"}, "return a value or an error instead"},
}

// shellRoom is the one folder that may name a shell: it serves command lines to people who ask for that.
const shellRoom = "servers/shell"

// shell is the path of a shell in a literal. A shell that is named without its path is not found.
var shell = regexp.MustCompile("^[\"`](/[a-z]+)+/(ba|da|k|z)?sh[\"`]$")

// absences checks what is nowhere: init functions, mutable package state, the environment, talk on stdout, shells.
func absences(t *tree) []string {
	var found []string
	for _, p := range t.packages {
		found = append(found, t.mutable(p)...)
		for _, f := range p.files {
			for _, decl := range f.ast.Decls {
				if d, ok := decl.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == "init" {
					found = append(found, t.at(d.Pos())+": an init function; make a table or a constructor instead")
				}
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok && !t.isFree(p.dir) {
					found = append(found, t.refused(p, sel)...)
				}
				if lit, ok := n.(*ast.BasicLit); ok && t.bound(p.dir) && p.dir != shellRoom && shell.MatchString(lit.Value) {
					found = append(found, fmt.Sprintf("%s: a shell %s; run the program itself", t.at(lit.Pos()), lit.Value))
				}
				return true
			})
		}
	}
	return found
}

func (t *tree) refused(p *pkg, sel *ast.SelectorExpr) []string {
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return nil
	}
	for _, f := range forbidden {
		if x.Name == f.pkg && slices.Contains(strings.Fields(f.names), sel.Sel.Name) && !slices.Contains(f.rooms, p.dir) {
			return []string{fmt.Sprintf("%s: %s.%s; %s", t.at(sel.Pos()), x.Name, sel.Sel.Name, f.instead)}
		}
	}
	return nil
}

// mutable finds package variables that something changes, as far as that can be seen without types: those that have
// neither a value nor a type whose zero value is an empty table, those of package sync, and those that a function assigns to or takes the address of.
func (t *tree) mutable(p *pkg) []string {
	var found []string
	vars := map[string]bool{}
	for _, f := range p.files {
		for _, decl := range f.ast.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.VAR {
				continue
			}
			for _, spec := range d.Specs {
				s := spec.(*ast.ValueSpec)
				for _, name := range s.Names {
					vars[name.Name] = name.Name != "_"
				}
				if !embeds(d.Doc) && !embeds(s.Doc) && (stateful(s) || synchronised(s)) {
					found = append(found, fmt.Sprintf("%s: package variable %s holds state; put it into a struct", t.at(s.Pos()), s.Names[0].Name))
				}
			}
		}
	}
	for _, f := range p.files {
		for _, decl := range f.ast.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Body != nil {
				found = append(found, t.changes(d, vars)...)
			}
		}
	}
	return found
}

// embeds reports whether a comment makes the compiler fill a variable with a file.
func embeds(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed") })
}

// stateful reports whether a variable without a value can be there only to be changed. An empty slice or map need not:
// it can be the table of a platform that has no entries.
func stateful(s *ast.ValueSpec) bool {
	switch s.Type.(type) {
	case *ast.ArrayType, *ast.MapType:
		return false
	}
	return len(s.Values) == 0
}

// synchronised reports whether a variable is of a type of sync or sync/atomic.
func synchronised(s *ast.ValueSpec) bool {
	found := false
	for _, root := range append([]ast.Expr{s.Type}, s.Values...) {
		if root == nil {
			continue
		}
		if lit, ok := root.(*ast.CompositeLit); ok {
			root = lit.Type
		}
		if unary, ok := root.(*ast.UnaryExpr); ok {
			if lit, ok := unary.X.(*ast.CompositeLit); ok {
				root = lit.Type
			}
		}
		sel, ok := root.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		x, ok := sel.X.(*ast.Ident)
		found = found || ok && (x.Name == "sync" || x.Name == "atomic")
	}
	return found
}

// changes finds where a function changes one of vars.
func (t *tree) changes(d *ast.FuncDecl, vars map[string]bool) []string {
	local := locals(d)
	var found []string
	check := func(e ast.Expr, how string) {
		if name := root(e); name != nil && vars[name.Name] && !local[name.Name] {
			found = append(found, fmt.Sprintf("%s: %s %s package variable %s", t.at(e.Pos()), d.Name.Name, how, name.Name))
		}
	}
	ast.Inspect(d.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, left := range n.Lhs {
					check(left, "changes")
				}
			}
		case *ast.IncDecStmt:
			check(n.X, "changes")
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				check(n.X, "takes the address of")
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "delete" || f.Name == "clear") {
				check(n.Args[0], "changes")
			}
		}
		return true
	})
	return found
}

// locals returns the names that a function declares anywhere.
func locals(d *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, name := range n.Names {
				names[name.Name] = true
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, left := range n.Lhs {
					if name, ok := left.(*ast.Ident); ok {
						names[name.Name] = true
					}
				}
			}
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{n.Key, n.Value} {
				if name, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					names[name.Name] = true
				}
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				names[name.Name] = true
			}
		}
		return true
	})
	return names
}

// root returns the variable that an expression is a part of, or nil.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return nil
		}
	}
}
