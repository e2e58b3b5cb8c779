//go:build !race

package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// doors are the packages through which a heavy dependency enters, the only ones to import it. A package stands for all
// folders below it, too.
var doors = []struct {
	dependency string
	rooms      []string
}{
	{"github.com/invopop/jsonschema", []string{"schemas"}},
	{"github.com/santhosh-tekuri/jsonschema", []string{"schemas"}},
	{"github.com/dlclark/regexp2", []string{"schemas"}},
	{"github.com/itchyny/gojq", []string{"sandbox/programs/jq"}},
	{"github.com/modelcontextprotocol/go-sdk", []string{"upstream", "gateway", "servers", "cli", "auth", "internal/mcptest"}},
	{"go.uber.org/zap", []string{"cli", "gateway", "observe"}},
	{"github.com/prometheus", []string{"observe"}},
	{"go.opentelemetry.io", []string{"observe"}},
	{"github.com/go-jose/go-jose", []string{"auth/oidc"}},
	{"github.com/spf13", []string{"cli"}},
	{"github.com/google/renameio", []string{"upstream/clients", "upstream/logins", "pipelines"}},
	{"github.com/zalando", []string{"upstream/logins"}},
	{"github.com/pelletier/go-toml", []string{"upstream/clients"}},
	{"golang.org/x/sys", []string{"sandbox", "upstream", "cli", "control", "internal/procgroup"}},
	{"github.com/docker", []string{"sandbox/docker"}},
	{"github.com/minio", []string{"store"}},
	{"github.com/containerd", []string{"sandbox/docker"}},
	{"os/exec", []string{"sandbox", "upstream", "servers/shell", "internal/procgroup"}},
	{"mvdan.cc/sh", []string{"servers/pipe", "servers/shell"}},
	{"log", []string{"cli", "gateway"}},
	{"github.com/google/go-cmp", []string{}},
	{"github.com/chromedp", []string{}},
	{"github.com/rogpeppe/go-internal", []string{"cli", "servers/filesystem"}},
	{"github.com/bmatcuk/doublestar", []string{"servers/filesystem"}},
}

// imports checks the arrows and the doors.
func imports(t *tree) []string {
	var found []string
	for _, p := range t.packages {
		if !t.bound(p.dir) {
			continue
		}
		for _, path := range p.imports {
			if room, ours := strings.CutPrefix(path, t.module+"/"); ours {
				found = append(found, t.arrow(p.dir, room)...)
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
func (t *tree) arrow(from, to string) []string {
	allowed, drawn := t.page.allowed(from)
	switch {
	case slices.Contains(t.page.all, to):
		return nil
	case !drawn:
		return []string{fmt.Sprintf("%s is a room without arrows; draw them in %s", from, pageName)}
	case slices.ContainsFunc(allowed, func(end string) bool { return matches(end, to) }):
		return nil
	}
	return []string{fmt.Sprintf("%s imports %s; if that is right, draw the arrow in %s", from, to, pageName)}
}

// isFree reports whether a folder may import what it likes: it is drawn so, or belongs to tests, which is what folders
// with a name that ends in "test" do.
func (t *tree) isFree(dir string) bool {
	forTests := slices.ContainsFunc(strings.Split(dir, "/"), func(part string) bool { return strings.HasSuffix(part, "test") })
	allowed, _ := t.page.allowed(dir)
	return forTests || slices.Contains(allowed, everything)
}

// bound reports whether the rules hold for a folder: the composition root may import every room of ours, and is bound all the same.
func (t *tree) bound(dir string) bool { return !t.isFree(dir) || dir == "cli" }

// within reports whether a path is the given one or below it.
func within(path, above string) bool { return path == above || strings.HasPrefix(path, above+"/") }

func orNobody(rooms []string) string {
	if len(rooms) == 0 {
		return "tests"
	}
	return strings.Join(rooms, ", ")
}
