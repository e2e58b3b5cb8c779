package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// arrows are the imports between rooms, drawn in ARCHITECTURE.md too: a room may import these rooms of ours, and none
// else. A folder that is not listed has the arrows of the folder above it, and may import that. internal/nearest is
// open to all; tests are free, and so are folders whose name ends in "test", examples and benchmarks.
var arrows = map[string][]string{
	"stages":              {"preview"},
	"preview":             {},
	"workspace":           {},
	"schemas":             {"stages"},
	"ui":                  {"stages"},
	"upstream":            {"stages", "preview", "schemas"},
	"sandbox":             {"stages", "sandbox/programs", "sandbox/wire"},
	"sandbox/programs":    {"stages", "sandbox/programs/jq"},
	"sandbox/programs/jq": {},
	"sandbox/wire":        {},
	"sandbox/jail":        {},
	"sandbox/docker":      {"sandbox", "stages"},
	"sandbox/local":       {"sandbox", "sandbox/jail", "stages"},
	"sandbox/worker":      {"sandbox", "sandbox/programs", "sandbox/jail", "sandbox/wire"},
	"gateway":             {"stages", "schemas", "upstream", "sandbox", "sandbox/programs", "preview"},
	"servers":             {"workspace", "servers/tool", "servers/strictjson", "servers/demo", "servers/fetch", "servers/filesystem"},
	"servers/tool":        {"servers/strictjson"},
	"servers/strictjson":  {},
	"servers/shell":       {"workspace", "sandbox", "sandbox/programs", "stages", "servers/tool"},
	"servers/pipe":        {"workspace", "sandbox", "sandbox/programs", "stages", "servers/tool"},
	"internal/nearest":    {},
}

// free folders may import everything.
var free = []string{"cmd", "examples", "bench", "docs", "deploy", "internal/archtest", "internal/doccheck"}

// doors are the packages through which a heavy dependency enters, the only ones to import it. "cmd" stands for all
// folders below it, too.
var doors = []struct {
	dependency string
	rooms      []string
}{
	{"github.com/docker/docker", []string{"sandbox/docker"}},
	{"github.com/invopop/jsonschema", []string{"schemas"}},
	{"github.com/santhosh-tekuri/jsonschema", []string{"schemas"}},
	{"github.com/dlclark/regexp2", []string{"schemas"}},
	{"github.com/itchyny/gojq", []string{"sandbox/programs"}},
	{"github.com/modelcontextprotocol/go-sdk", []string{"upstream", "gateway", "servers", "cmd", "internal/mcptest"}},
	{"go.uber.org/zap", []string{"cmd", "gateway"}},
	{"github.com/spf13", []string{"cmd"}},
	{"golang.org/x/sys", []string{"sandbox", "upstream"}},
	{"os/exec", []string{"sandbox", "upstream"}},
	{"log", []string{"cmd", "gateway"}},
	{"github.com/google/go-cmp", []string{}},
	{"github.com/rogpeppe/go-internal", []string{}},
}

// imports checks the arrows and the doors.
func imports(t *tree) []string {
	var found []string
	for _, p := range t.packages {
		if isFree(p.dir) {
			continue
		}
		for _, path := range p.imports {
			if room, ours := strings.CutPrefix(path, t.module+"/"); ours {
				found = append(found, arrow(p.dir, room)...)
				continue
			}
			for _, door := range doors {
				if within(path, door.dependency) && !slices.ContainsFunc(door.rooms, func(r string) bool { return within(p.dir, r) }) {
					found = append(found, fmt.Sprintf("%s imports %s, which only %s may", p.dir, path, orNobody(door.rooms)))
				}
			}
		}
	}
	return found
}

// arrow checks one import of ours.
func arrow(from, to string) []string {
	if to == "internal/nearest" {
		return nil
	}
	allowed, drawn := arrows[from]
	for above := from; !drawn; {
		i := strings.LastIndexByte(above, '/')
		if i < 0 {
			return []string{fmt.Sprintf("%s is a room without arrows; draw them here and in ARCHITECTURE.md", from)}
		}
		above = above[:i]
		if allowed, drawn = arrows[above]; drawn {
			allowed = append(slices.Clone(allowed), above)
		}
	}
	if slices.Contains(allowed, to) {
		return nil
	}
	return []string{fmt.Sprintf("%s imports %s; if that is right, draw the arrow here and in ARCHITECTURE.md", from, to)}
}

// isFree reports whether a folder may import what it likes: it is listed so, or belongs to tests.
func isFree(dir string) bool {
	forTests := slices.ContainsFunc(strings.Split(dir, "/"), func(part string) bool { return strings.HasSuffix(part, "test") })
	return forTests || slices.ContainsFunc(free, func(f string) bool { return within(dir, f) })
}

// within reports whether a path is the given one or below it.
func within(path, above string) bool { return path == above || strings.HasPrefix(path, above+"/") }

func orNobody(rooms []string) string {
	if len(rooms) == 0 {
		return "tests"
	}
	return strings.Join(rooms, ", ")
}
