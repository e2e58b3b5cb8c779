//go:build linux

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// The pipeline gives the same answer as a program that has all of the data, with one call for each page and for each
// open bug, and nothing but the answer comes back.
func TestTriage(t *testing.T) {
	replica := newReplica()
	var calls atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		replica.ServeHTTP(w, r)
	}))
	defer api.Close()

	var out, words bytes.Buffer
	mcsh := exec.Command(build(t), "run", "--json", "--config", "mcp.json", "-f", "pipeline.json", "--input", "-")
	mcsh.Stdin = strings.NewReader(fmt.Sprintf("%q", api.URL))
	mcsh.Stdout, mcsh.Stderr = &out, &words
	if err := mcsh.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &words)
	}
	var got struct {
		Output string
		Report struct {
			Stages []struct {
				Label    string
				Calls    int64
				BytesOut int64 `json:"bytes_out"`
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want, bugs := answer(t, replica, api.URL)
	if got.Output != want {
		t.Errorf("got\n%swant\n%s", got.Output, want)
	}
	if n := calls.Load(); n != 5+bugs {
		t.Errorf("%d calls, want 5 pages and %d bugs", n, bugs)
	}
	seen := got.Report.Stages[1].BytesOut + got.Report.Stages[3].BytesOut
	if came := int64(len(got.Output)); seen < 500_000 || came > 500 {
		t.Errorf("%d bytes came back of %d: not only the answer", came, seen)
	}
}

// build builds mcsh and its worker.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := parttest.Build(dir, "cmd/mcsh", "cmd/mcsh-worker"); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "mcsh")
}

type waiting struct {
	Issue  string `json:"issue"`
	People int    `json:"people"`
}

// answer works the ranking out without mcsh, and counts the open bugs that have comments.
func answer(t *testing.T, api http.Handler, base string) (lines string, bugs int64) {
	var list []waiting
	for page := 1; page <= 5; page++ {
		for _, i := range get[issue](t, api, fmt.Sprintf("%s/issues?page=%d", base, page)) {
			if i.State != "open" || i.Comments == 0 || i.Labels[0].Name != "bug" {
				continue
			}
			bugs++
			people, answered := map[string]bool{}, false
			for _, c := range get[comment](t, api, i.CommentsURL) {
				people[c.User.Login] = true
				answered = answered || c.Author == "MEMBER"
			}
			if !answered {
				list = append(list, waiting{fmt.Sprintf("%s/issues/%d", base, i.Number), len(people)})
			}
		}
	}
	slices.SortFunc(list, func(a, b waiting) int {
		return cmp.Or(cmp.Compare(b.People, a.People), cmp.Compare(a.Issue, b.Issue))
	})
	for _, w := range list[:5] {
		line, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		lines += string(line) + "\n"
	}
	return lines, bugs
}

func get[T any](t *testing.T, api http.Handler, url string) []T {
	t.Helper()
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
	var list []T
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	return list
}
