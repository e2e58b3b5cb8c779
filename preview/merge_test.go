//go:build !race

package preview

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/bench/quality"
)

// TestP7Merge: what is known of two parts, merged, is what is known of the whole.
func TestP7Merge(t *testing.T) {
	text := func(p *profile) string {
		p.foldMaps(p.root)
		p.foldRecursion(p.root)
		return renderTree(newItemTree(p.root).root, 100_000)
	}
	read := func(lines []string) *profile {
		j, err := readJSON(strings.NewReader(strings.Join(lines, "\n")), 0, false)
		if err != nil || j.broken != nil {
			t.Fatal(err, j.broken)
		}
		return j.p
	}
	for _, set := range quality.Sets() {
		lines := strings.Split(strings.TrimSpace(set.Data), "\n")
		switch {
		case set.Text || set.Name == "tools of playwright": // one document of many lines
			continue
		case len(lines) == 1:
			lines = strings.Split(strings.Repeat(lines[0]+"\n", 3)+"{\"late\":[1]}\n[\"other\"]", "\n")
		}
		whole := read(lines)
		cut := len(lines) / 2
		p, q := read(lines[:cut]), read(lines[cut:])
		p.nodes += q.nodes
		p.merge(p.root, q.root)
		for _, n := range []*node{whole.root, p.root} {
			forgetUnmerged(n)
		}
		if diff := cmp.Diff(text(whole), text(p)); diff != "" {
			t.Errorf("%s (-whole +merged)\n%s", set.Name, diff)
		}
	}
}

// forgetUnmerged forgets what merging cannot know: which object had a key first, and the lines of both long texts.
func forgetUnmerged(n *node) {
	n.texts = nil
	for i := range n.keys {
		n.keys[i].first = 0
	}
	for _, child := range n.children() {
		forgetUnmerged(child)
	}
}
