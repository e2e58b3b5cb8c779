//go:build !race

package ui_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestOutputViews: the page of a run loads its output in a view, and all links of the views lead to something.
func TestOutputViews(t *testing.T) {
	s := &strangeRuns{output: []byte(`{"orders": [` + strings.Repeat(`{"id": 1, "at": {"x": 2}},`, 60_000) + `{"id": 2}], "text": "` + strings.Repeat("é", 50_000) + `"}`)}
	ask := s.serve(t)
	links := regexp.MustCompile(`(?:hx-get|href)="(runs/q_1/[^"]+)"`)
	seen, queue := map[string]bool{}, []string{"runs/q_1"}
	for len(queue) > 0 && len(seen) < 60 {
		path := queue[0]
		queue = queue[1:]
		status, body := ask("/"+path, nil)
		if status != http.StatusOK {
			t.Errorf("%s: status %d", path, status)
		}
		if strings.Contains(path, "/output") {
			continue
		}
		if len(body) > 512<<10 {
			t.Errorf("%s: the page has %d bytes", path, len(body))
		}
		for _, m := range links.FindAllStringSubmatch(body, -1) {
			if next := strings.ReplaceAll(m[1], "&amp;", "&"); !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	for _, want := range []string{"runs/q_1/result", "runs/q_1/result?of=0&view=table", "runs/q_1/result?of=0&view=tree", "runs/q_1/output?of=0"} {
		if !seen[want] {
			t.Errorf("no link leads to %s", want)
		}
	}
}
