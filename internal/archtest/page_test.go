//go:build !race

package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A page is what ARCHITECTURE.md says in a form that can be checked: the table of packages and the arrows between them.
type page struct {
	rooms  []string            // folders
	arrows map[string][]string // who may import whom; "room/*" is every folder directly below a room
	all    []string            // what everything may import
	wrong  []string            // what cannot be understood
}

// Words of the arrows.
const (
	pageName   = "ARCHITECTURE.md"
	arrowSign  = "──►"
	everything = "everything"
	nothing    = "nothing"
)

var (
	quoted = regexp.MustCompile("`([^`]+)`")
	spaces = regexp.MustCompile(`\s{2,}`)
)

// readPage reads the page of the module at root: rows of a table that begin with a name in backquotes, and lines of
// arrows such as "a b ──► c d", of which several may stand in a line with two spaces or more between them.
func readPage(root string) (*page, error) {
	text, err := os.ReadFile(filepath.Join(root, pageName))
	if err != nil {
		return nil, err
	}
	p := &page{arrows: map[string][]string{}}
	part := ""
	for line := range strings.Lines(string(text)) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			part = strings.TrimSpace(heading)
		}
		switch {
		case part == "Packages" && strings.HasPrefix(line, "| `"):
			p.addRooms(line)
		case part == "Rules kept by tests" && strings.Contains(line, arrowSign):
			for _, statement := range spaces.Split(strings.TrimSpace(line), -1) {
				p.addArrows(statement)
			}
		}
	}
	return p, nil
}

// addRooms takes a row of the table: packages in the first column, folders below a single one in the second.
func (p *page) addRooms(row string) {
	columns := strings.Split(row, "|")
	var rooms []string
	for _, m := range quoted.FindAllStringSubmatch(columns[1], -1) {
		rooms = append(rooms, strings.TrimSuffix(m[1], "/"))
	}
	p.rooms = append(p.rooms, rooms...)
	for _, m := range quoted.FindAllStringSubmatch(columns[2], -1) {
		p.rooms = append(p.rooms, rooms[0]+"/"+m[1])
	}
}

func (p *page) addArrows(statement string) {
	sides := strings.Split(statement, arrowSign)
	if len(sides) != 2 {
		p.wrong = append(p.wrong, fmt.Sprintf("%s: %q is not one arrow", pageName, statement))
		return
	}
	to := strings.Fields(sides[1])
	for _, from := range strings.Fields(sides[0]) {
		if _, twice := p.arrows[from]; twice {
			p.wrong = append(p.wrong, fmt.Sprintf("%s: the arrows of %s are drawn twice", pageName, from))
		}
		if from == everything {
			p.all = append(p.all, to...)
			continue
		}
		p.arrows[from] = to
	}
}

// allowed returns what a folder may import: its own row; or that of "above/*", where above is the folder it is in; or
// what the folder above it may, and that folder. It reports false where nothing is drawn.
func (p *page) allowed(dir string) ([]string, bool) {
	if to, ok := p.arrows[dir]; ok {
		return to, true
	}
	i := strings.LastIndexByte(dir, '/')
	if i < 0 {
		return nil, false
	}
	above := dir[:i]
	if to, ok := p.arrows[above+"/*"]; ok {
		return to, true
	}
	to, ok := p.allowed(above)
	return append(slices.Clone(to), above), ok
}

// matches reports whether a folder is what one end of an arrow names.
func matches(end, dir string) bool {
	if above, ok := strings.CutSuffix(end, "/*"); ok {
		below, ok := strings.CutPrefix(dir, above+"/")
		return ok && !strings.Contains(below, "/")
	}
	return end == dir || end == everything
}

// rooms compares the page with the folders that there are: what is named exists, and what stands at the top is named.
func rooms(t *tree) []string {
	found := slices.Clone(t.page.wrong)
	for _, room := range t.page.rooms {
		if !t.has(room) && !slices.Contains(t.top, room) { // a folder of documents has no package
			found = append(found, fmt.Sprintf("%s has the package %s, which does not exist", pageName, room))
		}
	}
	for _, dir := range t.top {
		if !slices.ContainsFunc(t.page.rooms, func(room string) bool { return within(room, dir) }) {
			found = append(found, fmt.Sprintf("%s does not name the folder %s", pageName, dir))
		}
	}
	for from, to := range t.page.arrows {
		for _, end := range append([]string{from}, to...) {
			if end != everything && end != nothing && !t.has(strings.TrimSuffix(end, "/*")) {
				found = append(found, fmt.Sprintf("%s draws an arrow at %s, which does not exist", pageName, end))
			}
		}
		for _, end := range to {
			if end != everything && end != nothing && !t.imported(from, end) {
				found = append(found, fmt.Sprintf("%s draws an arrow from %s to %s, and there is no such import", pageName, from, end))
			}
		}
	}
	return found
}

// has reports whether there is a package at or below a folder.
func (t *tree) has(dir string) bool {
	return slices.ContainsFunc(t.packages, func(p *pkg) bool { return within(p.dir, dir) })
}

// imported reports whether an arrow is in use.
func (t *tree) imported(from, to string) bool {
	return slices.ContainsFunc(t.packages, func(p *pkg) bool {
		return (matches(from, p.dir) || within(p.dir, from)) && slices.ContainsFunc(p.imports, func(path string) bool {
			room, ours := strings.CutPrefix(path, t.module+"/")
			return ours && matches(to, room)
		})
	})
}
