package stages_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/mcsh-dev/mcsh/internal/flock"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/workspace"
)

// savedFiles is a real workspace.
type savedFiles struct{ dir *workspace.Dir }

func (f savedFiles) FileName(path string) (string, error) {
	name, err := f.dir.SaveName(path)
	return name, saveError(err)
}

func (f savedFiles) SaveFile(ctx context.Context, file stages.SavedFile, in io.Reader) (io.ReadCloser, error) {
	r, err := f.dir.Save(ctx, file.Path, in, workspace.SaveOptions{Append: file.Append, Max: file.Max, Charge: file.Charge})
	return r, saveError(err)
}

func saveError(err error) error {
	var e *workspace.Error
	switch {
	case errors.Is(err, workspace.ErrOversize):
		return stages.Errorf(stages.LimitExceeded, `add "confirm_oversize": true`, "too much")
	case errors.As(err, &e):
		return &stages.Error{Code: stages.InvalidArguments, Hint: e.Hint, Msg: e.Msg, Err: err}
	}
	return err
}

// withFiles gives the world a workspace with files, as txtar has them.
func (w *world) withFiles(t *testing.T, files string) {
	t.Helper()
	root := t.TempDir()
	for _, f := range txtar.Parse([]byte(files)).Files {
		if err := os.WriteFile(filepath.Join(root, f.Name), f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := workspace.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	w.root, w.files = root, savedFiles{dir}
}

// saved lists the files of the workspace.
func (w *world) saved(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(w.root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == ".mcsh" {
			return fs.SkipDir
		}
		if err != nil {
			return err
		}
		if e.Type().IsRegular() {
			data, err := os.ReadFile(path)
			rel, _ := filepath.Rel(w.root, path)
			fmt.Fprintf(&b, "%s: %q\n", rel, data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestTeeLarge saves more than memory should hold, whole, and passes it on.
func TestTeeLarge(t *testing.T) {
	w := newWorld()
	w.withFiles(t, "")
	size := int64(parttest.Times(32<<20, 200<<20))
	d := w.deps()
	d.Limits.Held, d.Limits.Workspace = 1<<20, 2*size+100 // with a line of the mirror
	p, errs := stages.CompileFed(t.Context(), []byte(`[{"type":"tee","path":"big","confirm_oversize":true}]`), d)
	if errs != nil {
		t.Fatal(errs)
	}
	passed := &counting{r: nil}
	report, err := p.Run(t.Context(), io.LimitReader(zeros{}, size), writerFunc(func(b []byte) (int, error) { passed.n += int64(len(b)); return len(b), nil }), stages.RunOptions{})
	info, serr := os.Stat(filepath.Join(w.root, "big"))
	if err != nil || serr != nil || info.Size() != size || passed.n != size || report.Stages[0].BytesOut != size {
		t.Errorf("%v, %v: %d passed on, want %d saved and passed on", err, serr, passed.n, size)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// manyLines are lines of 64 bytes without end, counted also while they are read.
type manyLines struct{ read atomic.Int64 }

func (l *manyLines) Read(p []byte) (int, error) {
	l.read.Add(int64(len(p)))
	for i := range p {
		p[i] = 'x'
		if i%64 == 63 {
			p[i] = '\n'
		}
	}
	return len(p), nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestTeeRefusesEarly: more than is saved unasked is refused when it comes, not when the data ends.
func TestTeeRefusesEarly(t *testing.T) {
	for _, pipeline := range []string{
		`[{"type":"tee","path":"big"}]`,
		`[{"type":"command","command":"cat"},{"type":"tee","path":"big"}]`,
		`[{"type":"command","command":"cat"},{"type":"tee","path":"big","append":true}]`,
	} {
		w := newWorld()
		w.withFiles(t, "")
		p, errs := stages.CompileFed(t.Context(), []byte(pipeline), w.deps())
		if errs != nil {
			t.Fatal(errs)
		}
		in := new(manyLines)
		_, err := p.Run(t.Context(), in, io.Discard, stages.RunOptions{})
		var e *stages.Error
		if !errors.As(err, &e) || e.Code != stages.LimitExceeded || in.read.Load() > 8<<20 || w.saved(t) != "" {
			t.Errorf("%s: error %v after %d bytes, files %s", pipeline, err, in.read.Load(), w.saved(t))
		}
	}
}

// TestTeeRefusesLate: what may have changed something before a tee that refuses is done to the end, and kept.
func TestTeeRefusesLate(t *testing.T) {
	k := newKept(t, runs.Options{})
	k.withFiles(t, "")
	k.deps.Files = k.files
	post := k.add("post", writes, "x", func(context.Context, map[string]any) (string, error) { return strings.Repeat("x", 50_000), nil })
	e := k.failedRun(t, numbers100, postEach, `{"type":"tee","path":"big"}`)
	if calls := post.calls.Load(); calls != 100 || e.Code != stages.LimitExceeded || e.Place != "3" || !e.Resume && e.Continue != 2 {
		t.Errorf("%d calls, then %v, Continue %d, Resume %v", calls, e, e.Continue, e.Resume)
	}
	if out, _ := k.must(t, from(e.Run, 2, `{"type":"command","command":"cat"}`)); len(out) < 100*50_000 || k.saved(t) != "" {
		t.Errorf("%d bytes are kept, files %s", len(out), k.saved(t))
	}
}

// TestTeeBroken: an input that breaks off is not saved, and its error is the run's.
func TestTeeBroken(t *testing.T) {
	w := newWorld()
	w.withFiles(t, "-- a --\nas it was\n")
	p, errs := stages.CompileFed(t.Context(), []byte(`[{"type":"tee","path":"a"},{"type":"command","command":"cat"}]`), w.deps())
	if errs != nil {
		t.Fatal(errs)
	}
	in := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errors.New("the pipe broke")))
	_, err := p.Run(t.Context(), in, io.Discard, stages.RunOptions{})
	if err == nil || !strings.Contains(err.Error(), "the pipe broke") || w.saved(t) != "a: \"as it was\\n\"\n" {
		t.Errorf("error %v, files %s", err, w.saved(t))
	}
}

// TestTeeWaits: a tee that waits for another process ends with the time of its run.
func TestTeeWaits(t *testing.T) {
	w := newWorld()
	w.withFiles(t, "-- a --\nas it was\n")
	if err := os.Mkdir(filepath.Join(w.root, ".mcsh"), 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(w.root, ".mcsh/lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if taken, err := flock.Try(lock); !taken || err != nil {
		t.Fatal(taken, err)
	}
	start := time.Now()
	for _, pipeline := range []string{
		`[{"type":"tee","path":"a","append":true}]`,
		`[{"type":"for_each","on_error":"collect","retries":2,"stages":[{"type":"tee","path":"a","append":true}]}]`,
	} {
		_, _, err = w.runWith(t, pipeline, "1\n2\n", w.deps(), stages.RunOptions{Timeout: 100 * time.Millisecond})
		var e *stages.Error
		if !errors.As(err, &e) || e.Code != stages.Timeout || w.saved(t) != "a: \"as it was\\n\"\n" {
			t.Errorf("%s: error %v, files %s", pipeline, err, w.saved(t))
		}
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

// TestTeeLimits: what tee writes is bounded for each run, and over all of them for as long as the workspace lasts.
func TestTeeLimits(t *testing.T) {
	const (
		tee  = `{"type":"tee","path":"a","append":true}`
		each = `{"type":"for_each","stages":[` + tee + `]}`
		two  = `{"type":"parallel","branches":{"x":[` + tee + `],"y":[{"type":"tee","path":"b"}]}}`
		skip = `{"type":"for_each","on_error":"skip","stages":[` + tee + `]}`
	)
	fed := strings.Repeat("\"2345678\"\n", 10)
	for _, tt := range []struct {
		limits   stages.Limits
		pipeline string
		runs     int // that succeed; the next one fails
		limit    string
	}{
		{stages.Limits{Workspace: 200}, tee, 1, ""},
		{stages.Limits{Workspace: 199}, tee, 0, "workspace"},
		{stages.Limits{Workspace: 150}, each, 0, "workspace"},
		{stages.Limits{Workspace: 150}, skip, 0, "workspace"},
		{stages.Limits{Workspace: 399}, two, 0, "workspace"},
		{stages.Limits{WorkspaceTotal: 599}, tee, 2, "workspace-total"},
		{stages.Limits{WorkspaceTotal: 599}, each, 2, "workspace-total"},
		{stages.Limits{WorkspaceTotal: 1 << 10, Workspace: 200}, tee, 5, "workspace-total"},
	} {
		w := newWorld()
		w.withFiles(t, "")
		d := w.deps()
		d.Limits = tt.limits
		for i := range tt.runs + 1 {
			dir, err := workspace.Open(w.root) // a gateway that was started anew
			if err != nil {
				t.Fatal(err)
			}
			d.Files = savedFiles{dir}
			_, _, err = w.runWith(t, "["+tt.pipeline+"]", fed, d, stages.RunOptions{})
			dir.Close()
			if i < tt.runs {
				if err != nil {
					t.Errorf("%s, run %d: %v", tt.pipeline, i+1, err)
				}
				continue
			}
			var e *stages.Error
			if tt.limit != "" && (!errors.As(err, &e) || e.Code != stages.LimitExceeded || e.Limit != tt.limit || !strings.Contains(e.Hint, "--limit "+tt.limit+"=")) {
				t.Errorf("%s: %v, want the limit %s", tt.pipeline, err, tt.limit)
			}
		}
	}
}
