package pipelines_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/flock"
	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/stages"
)

// saying is a file with a description.
func saying(text string) []byte { return []byte(file(fmt.Sprintf(`"description": %q`, text), plan)) }

var (
	person = pipelines.Author{}
	ann    = pipelines.Author{Agent: true, Caller: "user ann"}
	bob    = pipelines.Author{Agent: true, Caller: "user bob"}
)

// TestVersions: the number grows with each change of content, old versions stay, and a change for another version is refused.
func TestVersions(t *testing.T) {
	ctx, s := t.Context(), pipelines.NewStore(t.TempDir())
	for i, c := range []struct {
		text   string
		base   int
		author pipelines.Author
		want   int
		err    error
	}{
		{"one", 1, person, 0, pipelines.ErrConflict},
		{"one", 0, person, 1, nil},
		{"two", 0, person, 0, pipelines.ErrConflict},
		{"one", 1, person, 1, nil}, // it is no change
		{"two", 1, person, 2, nil},
		{"one", 2, person, 3, nil},
		{"four", pipelines.Any, person, 4, nil},
		{"five", 4, ann, 0, pipelines.ErrTaken},
		{"five", 0, ann, 0, pipelines.ErrTaken},
	} {
		if v, err := s.Save(ctx, "a", saying(c.text), c.base, c.author); v.Number != c.want || !errors.Is(err, c.err) {
			t.Errorf("%d: saving %q on %d: got %d, %v", i, c.text, c.base, v.Number, err)
		}
	}
	list, err := s.Versions(ctx, "a")
	if err != nil || len(list) != 4 || list[3].Text != string(saying("one")) || list[3].Hash != list[1].Hash {
		t.Errorf("the versions are %v, %v", list, err)
	}
	if p, err := s.Get(ctx, "a@2", pipelines.Everybody); err != nil || p.Definition.Description != "two" {
		t.Errorf("a@2 is %+v, %v", p, err)
	}
	for _, name := range []string{"a@9", "b", "a@x", "../a"} {
		if _, err := s.Get(ctx, name, pipelines.Everybody); !errors.Is(err, pipelines.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Save(ctx, "a", []byte("{"), 4, person); err == nil {
		t.Error("a file with a mistake was saved")
	}
	if err := s.Remove(ctx, "a", 3); !errors.Is(err, pipelines.ErrConflict) {
		t.Errorf("removing another version: %v", err)
	}
	if err := s.Remove(ctx, "a", 4); err != nil {
		t.Error(err)
	}
	if p, err := s.Get(ctx, "a@2", pipelines.Everybody); err != nil || !p.Removed || p.Definition.Description != "two" || filepath.Base(p.Path) != "a.json" {
		t.Errorf("after its removal a@2 is %+v, %v", p, err)
	}
	for _, name := range []string{"a", "a@9"} {
		if _, err := s.Get(ctx, name, pipelines.Everybody); !errors.Is(err, pipelines.ErrNotFound) {
			t.Errorf("after its removal %s: %v", name, err)
		}
	}
	set := pipelines.NewSet(s, stages.Deps{}, func() uint64 { return 0 })
	if _, err := set.Find(ctx, "a@2", pipelines.Operator()); err != nil {
		t.Errorf("the operator: %v", err)
	}
	if t1, err := set.Find(ctx, "a@2", pipelines.Viewer{Caller: "user ann"}); err == nil {
		t.Errorf("a caller has %+v of what was removed", t1)
	}
	if v, err := s.Save(ctx, "a", saying("back"), 0, person); err != nil || v.Number != 5 {
		t.Errorf("after its removal it is saved as %d, %v", v.Number, err)
	}
}

// TestAuthors: an agent adds versions only to what agents of its caller have saved. Its content stays its own by whatever way it
// comes back, until a person adopts it or writes another one.
func TestAuthors(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s := pipelines.NewStore(dir)
	if _, err := s.Save(ctx, "a", saying("one"), 0, ann); err != nil {
		t.Fatal(err)
	}
	private := func(want bool) {
		t.Helper()
		if err := s.Reload(ctx); err != nil {
			t.Fatal(err)
		}
		p, err := s.Get(ctx, "a", pipelines.Everybody)
		if err != nil || p.Version.VisibleTo("user bob") == want || !p.Version.VisibleTo("user ann") {
			t.Errorf("%+v, %v: want private %v", p.Version, err, want)
		}
	}
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "a.json"), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	private(true)
	if _, err := s.Save(ctx, "a", saying("two"), 1, bob); !errors.Is(err, pipelines.ErrTaken) || strings.Contains(err.Error(), "version") {
		t.Errorf("another caller's agent: %v", err)
	}
	if v, err := s.Save(ctx, "a", saying("two"), 1, ann); err != nil || v.Number != 2 {
		t.Errorf("its own agent: %+v, %v", v, err)
	}
	write(saying("a person's"))
	private(false)
	write(saying("one"))
	private(true)
	if v, err := s.Adopt(ctx, "a", pipelines.Any); err != nil || v.Private() {
		t.Errorf("adopted: %+v, %v", v, err)
	}
	private(false)
	if _, err := s.Save(ctx, "a", saying("three"), pipelines.Any, ann); !errors.Is(err, pipelines.ErrTaken) {
		t.Errorf("an adopted one: %v", err)
	}
	records, err := filepath.Glob(filepath.Join(dir, ".versions", "a", "*.json"))
	if err != nil || len(records) == 0 {
		t.Fatal(records, err)
	}
	for _, path := range records {
		if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_ = s.Reload(ctx)
	if v, err := s.Adopt(ctx, "a", pipelines.Any); err == nil {
		t.Errorf("with damaged records it was adopted: %+v", v)
	}
	p, err := s.Get(ctx, "a", pipelines.Everybody) // nobody knows whose it is
	if err != nil || p.Err == nil || p.Version.VisibleTo("user ann") || p.Version.VisibleTo("") {
		t.Errorf("with damaged records: %+v, %v", p, err)
	}
}

// TestTwoWriters: of many writers on one version, in two stores, one wins each time and the others are told.
func TestTwoWriters(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	won := make([][]int, 2)
	for i := range won {
		s := pipelines.NewStore(dir)
		wg.Go(func() {
			for base := 0; base < 20; {
				v, err := s.Save(t.Context(), "a", saying(fmt.Sprint(i, base)), base, person)
				if err == nil {
					won[i] = append(won[i], v.Number)
				} else if !errors.Is(err, pipelines.ErrConflict) {
					t.Errorf("writer %d: %v", i, err)
					return
				}
				p, err := s.Get(t.Context(), "a", pipelines.Everybody)
				if err != nil {
					t.Error(err)
					return
				}
				base = p.Version.Number
			}
		})
	}
	wg.Wait()
	seen := map[int]int{}
	for _, n := range append(won[0], won[1]...) {
		seen[n]++
	}
	for n := 1; n <= 20; n++ {
		if seen[n] != 1 {
			t.Errorf("version %d was saved %d times", n, seen[n])
		}
	}
}

// TestDirectories: the first directory wins, and what it hides is said. Files that are wrong stop no others.
func TestDirectories(t *testing.T) {
	ctx, first, second := t.Context(), t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(first, "a.json"): string(saying("first")), filepath.Join(second, "a.json"): string(saying("second")),
		filepath.Join(second, "b.json"): string(saying("b")), filepath.Join(first, "bad.json"): "{", filepath.Join(first, "Bad-Name.json"): string(saying("x")),
		filepath.Join(first, "notes.txt"): "x", filepath.Join(first, ".hidden.json"): "{",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(first, "dir.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := pipelines.NewStore(first, second, filepath.Join(first, "none"))
	list, err := s.List(ctx)
	var got []string
	for _, p := range list {
		state := "broken"
		if p.Err == nil {
			state = p.Definition.Description
		}
		got = append(got, fmt.Sprintf("%s %s %d", p.Name, state, len(p.Shadows)))
	}
	if want := "Bad-Name broken 0, a first 1, b b 0, bad broken 0, dir broken 0"; err != nil || strings.Join(got, ", ") != want {
		t.Errorf("got %q, %v, want %q", strings.Join(got, ", "), err, want)
	}
	if v, err := s.Save(ctx, "b", saying("again"), 1, person); err != nil || v.Number != 2 {
		t.Errorf("saving in the second directory: %+v, %v", v, err)
	}
	if text, err := os.ReadFile(filepath.Join(second, "b.json")); err != nil || string(text) != string(saying("again")) {
		t.Errorf("it holds %s, %v", text, err)
	}
}

// TestSecondDirectory: a store that has read nothing yet changes a pipeline where it is.
func TestSecondDirectory(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	if _, err := pipelines.NewStore(second).Save(t.Context(), "a", saying("one"), 0, ann); err != nil {
		t.Fatal(err)
	}
	if v, err := pipelines.NewStore(first, second).Adopt(t.Context(), "a", 1); err != nil || v.Private() {
		t.Errorf("adopted %+v, %v", v, err)
	}
	if v, err := pipelines.NewStore(first, second).Save(t.Context(), "a", saying("two"), 1, person); err != nil || v.Number != 2 {
		t.Errorf("saved %+v, %v", v, err)
	}
	if p, err := pipelines.NewStore(second).Get(t.Context(), "a", pipelines.Everybody); err != nil || p.Definition.Description != "two" {
		t.Errorf("the second directory has %+v, %v", p, err)
	}
}

// TestCancelledSave: a save that waits for another process ends with its context, and changes nothing.
func TestCancelledSave(t *testing.T) {
	s := pipelines.NewStore(t.TempDir())
	if _, err := s.Save(t.Context(), "a", saying("one"), 0, person); err != nil {
		t.Fatal(err)
	}
	other, err := os.OpenFile(filepath.Join(s.Places()[0], ".versions", "lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if taken, err := flock.Try(other); err != nil || !taken {
		t.Fatal(taken, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Save(ctx, "a", saying("two"), 1, person); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if p, err := s.Get(t.Context(), "a", pipelines.Everybody); err != nil || p.Version.Number != 1 {
		t.Errorf("got %+v, %v", p.Version, err)
	}
}

// TestUnfinishedSave: a reader records nothing while another process is between the record and the file of its change. Otherwise
// the content of an agent could lose its author.
func TestUnfinishedSave(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	writer := pipelines.NewStore(dir)
	for _, text := range []string{"one", "two"} {
		if _, err := writer.Save(ctx, "a", saying(text), pipelines.Any, ann); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "a.json")
	if err := os.WriteFile(path, saying("one"), 0o644); err != nil { // as it was before the second
		t.Fatal(err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, ".versions", "lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := flock.Wait(ctx, lock); err != nil {
		t.Fatal(err)
	}
	reader := pipelines.NewStore(dir)
	if p, err := reader.Get(ctx, "a", pipelines.Everybody); err != nil || p.Definition.Description != "one" || !p.Version.Private() {
		t.Errorf("before the end of the change: %+v, %v", p, err)
	}
	if err := os.WriteFile(path, saying("two"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := reader.Reload(ctx); err != nil {
		t.Fatal(err)
	}
	if p, err := reader.Get(ctx, "a", pipelines.Everybody); err != nil || p.Version.Number != 2 || p.Version.Author != ann {
		t.Errorf("behind its end: %+v, %v", p.Version, err)
	}
}
