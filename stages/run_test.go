package stages_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/mcsh-dev/mcsh/stages"
)

// TestRun runs every case of testdata/run: a pipeline, perhaps an input, and the output or the error that must come.
func TestRun(t *testing.T) {
	files, err := filepath.Glob("testdata/run/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got []txtar.File
			synctest.Test(t, func(t *testing.T) { got = runCase(t, newWorld(), archive) })
			if os.Getenv("UPDATE") != "" {
				archive.Files = append(archive.Files[:without(archive)], got...)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			for _, f := range got {
				want, ok := part(archive, f.Name)
				if !ok && f.Name != "calls" {
					t.Errorf("unexpected %s:\n%s", f.Name, f.Data)
				} else if ok && string(f.Data) != want {
					t.Errorf("%s: (-want +got)\n%s", f.Name, cmp.Diff(want, string(f.Data)))
				}
			}
			for _, f := range archive.Files {
				if _, ok := part(&txtar.Archive{Files: got}, f.Name); !ok && !given(f.Name) {
					t.Errorf("missing %s:\n%s", f.Name, f.Data)
				}
			}
		})
	}
}

// given reports whether a part of a case is not a result.
func given(name string) bool {
	return name == "pipeline" || name == "input" || name == "tools" || name == "workspace"
}

// without returns where the results of a case begin.
func without(a *txtar.Archive) int {
	for i, f := range a.Files {
		if !given(f.Name) {
			return i
		}
	}
	return len(a.Files)
}

func part(a *txtar.Archive, name string) (string, bool) {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data), true
		}
	}
	return "", false
}

func runCase(t *testing.T, w *world, archive *txtar.Archive) []txtar.File {
	t.Helper()
	pipeline, _ := part(archive, "pipeline")
	input, _ := part(archive, "input")
	if tools, ok := part(archive, "tools"); ok {
		w.addTools(t, tools)
	}
	if files, ok := part(archive, "workspace"); ok {
		w.withFiles(t, strings.ReplaceAll(files, "== ", "-- "))
	}
	if _, errs := stages.CompileFed(t.Context(), []byte(pipeline), w.deps()); errs != nil {
		var plan strings.Builder
		for _, e := range errs {
			fmt.Fprintf(&plan, "%s %s %s\n", e.Place, e.Code, e.Msg)
		}
		return []txtar.File{{Name: "plan", Data: []byte(plan.String())}}
	}
	out, report, err := w.run(t, pipeline, input)
	synctest.Wait()
	var files []txtar.File
	if err == nil {
		files = append(files, txtar.File{Name: "output", Data: newlined(out)})
	} else {
		files = append(files, txtar.File{Name: "error", Data: newlined(describe(t, err))})
	}
	for _, window := range report.Windows {
		files = append(files, txtar.File{Name: "window " + string(window.Place), Data: newlined(window.Text)})
	}
	if calls := w.callsOf("write"); len(calls) > 0 {
		files = append(files, txtar.File{Name: "calls", Data: newlined(strings.Join(sorted(calls), "\n"))})
	}
	if _, ok := part(archive, "report"); ok {
		files = append(files, txtar.File{Name: "report", Data: []byte(counted(t, report.Stages, ""))})
	}
	if w.files != nil {
		files = append(files, txtar.File{Name: "saved", Data: []byte(w.saved(t))})
	}
	if asked := w.asked(report); asked != "" {
		files = append(files, txtar.File{Name: "asked", Data: []byte(asked)})
	}
	return files
}

// counted prints what a report counts, one stage a line.
func counted(t *testing.T, list []stages.StageReport, indent string) string {
	t.Helper()
	var b strings.Builder
	for _, s := range list {
		line, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var counts map[string]any
		if err := json.Unmarshal(line, &counts); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"label", "bytes_in", "bytes_out", "returned", "ms", "busy_ms", "stages", "changes"} {
			delete(counts, name)
		}
		fmt.Fprintf(&b, "%s%s %s\n%s", indent, s.Label, encode(counts), counted(t, s.Stages, indent+"  "))
	}
	return b.String()
}

// newlined ends text with a newline, as txtar does.
func newlined(s string) []byte {
	if s == "" || strings.HasSuffix(s, "\n") {
		return []byte(s)
	}
	return []byte(s + "\n")
}

// describe prints everything an error tells, one member a line.
func describe(t *testing.T, err error) string {
	t.Helper()
	e, ok := err.(*stages.Error)
	if !ok {
		t.Fatalf("error is a %T, want *stages.Error: %v", err, err)
	}
	b, _ := json.MarshalIndent(struct {
		Code                       stages.Code
		Place                      stages.Place
		Label, Msg                 string
		Hint                       string `json:",omitempty"`
		Item, Items, Started, Done int    `json:",omitempty"`
		Sample                     string `json:",omitempty"`
	}{e.Code, e.Place, e.Label, e.Msg, e.Hint, e.Item, e.Items, e.Started, e.Done, strings.ToValidUTF8(string(e.Sample), "\uFFFD")}, "", " ")
	if e.Item > 0 && e.Failed != 1 {
		t.Errorf("%d items failed, want one", e.Failed)
	}
	return string(b)
}
