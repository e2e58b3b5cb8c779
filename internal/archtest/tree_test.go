//go:build !race

package archtest

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A tree is the source of a module, parsed.
type tree struct {
	module   string
	fset     *token.FileSet
	packages []*pkg
	top      []string // folders at the root that hold something, hidden ones and what .gitignore names left out
	page     *page
}

// A pkg is a folder of Go files, tests left out.
type pkg struct {
	dir     string // from the root of the module, with slashes
	name    string
	files   []*file
	imports []string
}

type file struct {
	path  string
	lines [][]byte
	ast   *ast.File
}

// load parses the module at root, and reads its page.
func load(root string) (*tree, error) {
	t, err := parse(root)
	if err != nil {
		return nil, err
	}
	if t.page, err = readPage(root); err != nil {
		return nil, err
	}
	t.top, err = topFolders(root)
	return t, err
}

// parse parses the module at root.
func parse(root string) (*tree, error) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(string(mod), "\n")
	t := &tree{module: strings.TrimSpace(strings.TrimPrefix(first, "module")), fset: token.NewFileSet(), page: &page{}}
	byDir := map[string]*pkg{}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skip(root, name, d.Name())
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		return t.add(byDir, root, name)
	})
	slices.SortFunc(t.packages, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	return t, err
}

// topFolders lists the folders at root.
func topFolders(root string) ([]string, error) {
	ignored, err := os.ReadFile(filepath.Join(root, ".gitignore"))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	entries, err := os.ReadDir(root)
	var names []string
	for _, e := range entries {
		own := skip(root, filepath.Join(root, e.Name()), e.Name()) == nil
		if e.IsDir() && own && !slices.Contains(strings.Fields(string(ignored)), "/"+e.Name()+"/") {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// skip leaves out folders that are no part of the module: data, hidden ones, and modules of their own.
func skip(root, name, base string) error {
	if name == root {
		return nil
	}
	_, err := os.Stat(filepath.Join(name, "go.mod"))
	if base == "testdata" || base == "node_modules" || base[0] == '.' || base[0] == '_' || err == nil {
		return filepath.SkipDir
	}
	return nil
}

func (t *tree) add(byDir map[string]*pkg, root, name string) error {
	src, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return err
	}
	rel = filepath.ToSlash(rel)
	parsed, err := parser.ParseFile(t.fset, rel, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir := path.Dir(rel)
	p := byDir[dir]
	if p == nil {
		p = &pkg{dir: dir, name: parsed.Name.Name}
		byDir[dir] = p
		t.packages = append(t.packages, p)
	}
	f := &file{path: rel, ast: parsed}
	for lines := bufio.NewScanner(bytes.NewReader(src)); lines.Scan(); {
		f.lines = append(f.lines, bytes.Clone(lines.Bytes()))
	}
	p.files = append(p.files, f)
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", rel, err)
		}
		if !slices.Contains(p.imports, imported) {
			p.imports = append(p.imports, imported)
		}
	}
	return nil
}

// line returns the line of a position, counted from 1.
func (t *tree) line(pos token.Pos) int { return t.fset.Position(pos).Line }

// at writes a position as file:line.
func (t *tree) at(pos token.Pos) string {
	p := t.fset.Position(pos)
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// generated reports whether a file says that a program wrote it.
func (f *file) generated() bool { return ast.IsGenerated(f.ast) }
