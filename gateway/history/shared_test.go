package history_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/store"
	"github.com/mcsh-dev/mcsh/store/storetest"
)

// TestHistoryElsewhere: the finished runs of one gateway are shown by another one as by itself, with their outputs, and as long.
func TestHistoryElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := storetest.Directory(t)
		a, b := newWorld(t, runs.Options{Shared: dir, TTL: time.Hour}), newWorld(t, runs.Options{Shared: dir, TTL: time.Hour})
		a.end(a.begin("q_ann", "ann", `[{"type":"x"}]`), "ann", "the output", nil)
		time.Sleep(time.Second)
		a.end(a.begin("q_bob", "bob", `[{"type":"y"}]`), "bob", "other", errors.New("it failed"))
		time.Sleep(time.Second)
		b.end(b.begin("q_here", "ann", `[]`), "ann", "mine", nil)
		time.Sleep(5 * time.Second)
		for _, viewer := range []control.Viewer{operator, {All: true}, {Caller: "ann"}, {Caller: "eve"}} {
			if got, want := requests(b.Runs(t.Context(), viewer, control.RunFilter{})), requests(a.Runs(t.Context(), viewer, control.RunFilter{})); !cmp.Equal(got, want) {
				t.Errorf("%+v: runs %v at one gateway, %v at the other", viewer, got, want)
			}
			for _, request := range []string{"q_ann", "q_bob", "q_here"} {
				here, err := a.Run(t.Context(), viewer, request)
				there, err2 := b.Run(t.Context(), viewer, request)
				here.Cursor, there.Cursor = 0, 0
				if diff := cmp.Diff(here, there); diff != "" || (err == nil) != (err2 == nil) {
					t.Errorf("%+v, %s: %v, %v\n%s", viewer, request, err, err2, diff)
				}
				if part, err := b.Output(t.Context(), viewer, control.OutputRequest{Request: request, Stage: 1}); viewer.Results && (err != nil || len(part.Data) == 0) {
					t.Errorf("%s: output %q, %v", request, part.Data, err)
				}
			}
		}
		time.Sleep(2 * time.Hour)
		if got := requests(b.Runs(t.Context(), operator, control.RunFilter{})); len(got) > 0 {
			t.Errorf("after their time there are %v", got)
		}
	})
}

// TestHistoryElsewhereFull: where there are as many runs as are kept, newer ones of another gateway take the place of the oldest.
func TestHistoryElsewhereFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := storetest.Directory(t)
		a, b := newWorld(t, runs.Options{Shared: dir, TTL: time.Hour}), newWorld(t, runs.Options{Shared: dir, TTL: time.Hour})
		for i := range 1000 {
			b.begin(fmt.Sprint("h_", i), "ann", `[]`).End(stages.Report{}, 0, nil)
			time.Sleep(time.Millisecond)
		}
		a.end(a.begin("q_new", "ann", `[]`), "ann", "x", nil)
		a.Sync(t.Context())
		time.Sleep(5 * time.Second)
		got := requests(b.Runs(t.Context(), operator, control.RunFilter{}))
		if len(got) != 1000 || !slices.Contains(got, "q_new") || slices.Contains(got, "h_0") {
			t.Errorf("%d runs; the new one: %v, the oldest: %v", len(got), slices.Contains(got, "q_new"), slices.Contains(got, "h_0"))
		}
	})
}

// TestHistoryWithoutStore: where the store fails, or has something else, the runs of the gateway itself are shown in time.
func TestHistoryWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		dir, err := store.OpenDirectory(path)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		if err := os.Mkdir(filepath.Join(path, "history"), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"history/0-a": "", "history/0-b": "no records", "history/0-c": strings.Repeat("x", 9<<20)} {
			if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w := newWorld(t, runs.Options{Shared: dir})
		w.end(w.begin("q_1", "ann", `[]`), "ann", "x", nil)
		time.Sleep(5 * time.Second)
		if got := requests(w.Runs(t.Context(), operator, control.RunFilter{})); len(got) != 1 {
			t.Errorf("got %v", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		time.Sleep(5 * time.Second)
		if got := requests(w.Runs(ctx, operator, control.RunFilter{})); len(got) != 1 {
			t.Errorf("got %v", got)
		}
	})
}
