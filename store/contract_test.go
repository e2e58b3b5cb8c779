package store_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mcsh-dev/mcsh/store"
)

func put(ctx context.Context, s store.Store, name, data string) error {
	return s.Put(ctx, name, []byte(data))
}

func mustPut(t *testing.T, s store.Store, name, data string) {
	t.Helper()
	if err := put(t.Context(), s, name, data); err != nil {
		t.Fatal(err)
	}
}

func get(ctx context.Context, s store.Store, name string) (string, error) {
	data, err := s.Get(ctx, name)
	return string(data), err
}

// names lists names, with sizes behind them.
func names(t *testing.T, s store.Store, prefix string) []string {
	t.Helper()
	var found []string
	for o, err := range s.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		if o.Modified.IsZero() {
			t.Errorf("%s has no time", o.Name)
		}
		found = append(found, fmt.Sprintf("%s %d", o.Name, o.Size))
	}
	return found
}

// text returns n bytes in which no two parts are alike.
func text(n int) string {
	b := make([]byte, 0, n+20)
	for i := int64(0); len(b) < n; i++ {
		b = append(strconv.AppendInt(b, i, 36), ' ')
	}
	return string(b[:n])
}

// contract runs what holds for every store.
func contract(t *testing.T, open func(t *testing.T) store.Store) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, store.Store)
	}{
		{"one writer wins", oneWins},
		{"sizes", sizes},
		{"nothing there", nothingThere},
		{"lists", lists},
		{"deletes", deletes},
		{"bad names", badNames},
		{"cancelled", cancelled},
		{"puts and deletes at once", putsAndDeletes},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

func oneWins(t *testing.T, s store.Store) {
	const writers = 20
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() { errs[i] = put(t.Context(), s, "runs/r_1/claim/0", fmt.Sprint("writer ", i, text(i*10_000))) })
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Errorf("both %d and %d have won", winner, i)
		case err == nil:
			winner = i
		case !errors.Is(err, store.ErrExists):
			t.Errorf("writer %d: %v", i, err)
		}
	}
	if winner < 0 {
		t.Fatal("nobody has won")
	}
	if got, err := get(t.Context(), s, "runs/r_1/claim/0"); err != nil || got != fmt.Sprint("writer ", winner, text(winner*10_000)) {
		t.Errorf("there is not what the winner %d has written but %.20q, %v", winner, got, err)
	}
}

func sizes(t *testing.T, s store.Store) {
	for _, size := range []int{0, 1, 64 << 10, 5<<20 + 1, store.MaxObject} {
		name, data := fmt.Sprint("sizes/", size), text(size)
		mustPut(t, s, name, data)
		if got := names(t, s, name); len(got) != 1 || got[0] != fmt.Sprintf("%s %d", name, size) {
			t.Errorf("the list has %q", got)
		}
		if got, err := get(t.Context(), s, name); err != nil || got != data {
			t.Errorf("%d bytes: read %d bytes %.20q, %v", size, len(got), got, err)
		}
	}
	if err := put(t.Context(), s, "too/long", text(store.MaxObject+1<<10)); err == nil || !strings.Contains(err.Error(), `"too/long" has 8389632 bytes`) {
		t.Errorf("an object that is too long: %v", err)
	}
	if got := names(t, s, "too"); len(got) > 0 {
		t.Errorf("an object that is too long leaves %q", got)
	}
}

func nothingThere(t *testing.T, s store.Store) {
	mustPut(t, s, "runs/r_1/0", "x")
	for _, name := range []string{"runs", "runs/r_1", "runs/r_1/1", "runs/r_1/0/1", "other"} {
		if got, err := get(t.Context(), s, name); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err := s.Delete(t.Context(), name); err != nil {
			t.Errorf("deleting %s: %v", name, err)
		}
	}
	if got := names(t, s, ""); len(got) != 1 {
		t.Errorf("there are %q", got)
	}
}

func lists(t *testing.T, s store.Store) {
	want := []string{"a-b 1", "a.b 1", "a/b 1", "a/b-c/d 1", "a/b.c/d 1", "a/b0 1", "a0 1", "b/.x 1", "b/..x 1", "b/_ 1"}
	for _, i := range []int{3, 9, 0, 5, 1, 8, 2, 7, 6, 4} {
		name, _, _ := strings.Cut(want[i], " ")
		mustPut(t, s, name, "x")
	}
	for prefix, part := range map[string][]string{
		"":  {"a-b 1", "a.b 1", "a/b 1", "a/b-c/d 1", "a/b.c/d 1", "a/b0 1", "a0 1", "b/..x 1", "b/.x 1", "b/_ 1"},
		"a": want[:7], "a/": want[2:6], "a/b": want[2:6], "a/b-c/": want[3:4], "a/b-c/d": want[3:4], "a/b-c/d/": nil, "c": nil, "c/d": nil, "a/b/": nil, "b/.": {"b/..x 1", "b/.x 1"},
	} {
		if got := names(t, s, prefix); fmt.Sprint(got) != fmt.Sprint(part) {
			t.Errorf("below %q are %q, want %q", prefix, got, part)
		}
	}
	for range s.List(t.Context(), "") {
		break // which ends the list
	}
	for _, prefix := range []string{"/", "../", "a/../", "a b", "a//", strings.Repeat("a", 256)} {
		var rows []store.Object
		var failed error
		for o, err := range s.List(t.Context(), prefix) {
			if failed = err; err == nil {
				rows = append(rows, o)
			}
		}
		if failed == nil || len(rows) > 0 {
			t.Errorf("the prefix %q has %v, %v", prefix, rows, failed)
		}
	}
	if got := names(t, s, ".."); len(got) > 0 {
		t.Errorf("below .. are %q", got)
	}
}

func deletes(t *testing.T, s store.Store) {
	mustPut(t, s, "a/b/c", "1")
	for range 2 {
		if err := s.Delete(t.Context(), "a/b/c"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := get(t.Context(), s, "a/b/c"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a deleted object: %v", err)
	}
	mustPut(t, s, "a/b/c", "2")
	mustPut(t, s, "a/d", "3")
	if got, err := get(t.Context(), s, "a/b/c"); err != nil || got != "2" {
		t.Errorf("an object that was written again is %q, %v", got, err)
	}
}

func badNames(t *testing.T, s store.Store) {
	for _, name := range []string{
		"", "/", "a/", "/a", "a//b", ".", "..", "a/..", "../a", "a/./b", "a b", "a\x00", "a\\b", "ä", "~drafts/x", "a:b", "a\n", "C:",
		strings.Repeat("a", 256), strings.Repeat("a/", 256) + "a",
	} {
		if err := put(t.Context(), s, name, "x"); err == nil || errors.Is(err, store.ErrExists) {
			t.Errorf("putting %q: %v", name, err)
		}
		if _, err := get(t.Context(), s, name); err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("getting %q: %v", name, err)
		}
		if err := s.Delete(t.Context(), name); err == nil {
			t.Errorf("deleting %q is no error", name)
		}
	}
	mustPut(t, s, strings.Repeat("a/", 255)+"bc", "x") // the longest
}

func cancelled(t *testing.T, s store.Store) {
	cause := errors.New("the caller has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	mustPut(t, s, "a/b", "x")
	mustPut(t, s, "a/c", "x")
	seen := 0
	for _, err := range s.List(ctx, "") {
		if seen++; seen == 1 && err == nil {
			cancel(cause)
		}
	}
	cancel(cause)
	for what, err := range map[string]error{"put": put(ctx, s, "a/d", "x"), "delete": s.Delete(ctx, "a/c"), "get": func() error { _, err := get(ctx, s, "a/c"); return err }()} {
		if !errors.Is(err, context.Canceled) && !errors.Is(err, cause) {
			t.Errorf("%s after the end: %v", what, err)
		}
	}
	for _, err := range s.List(ctx, "") {
		if err == nil {
			t.Error("a list goes on after the end")
		}
	}
	if got := names(t, s, ""); len(got) != 2 {
		t.Errorf("there are %q", got)
	}
}

// putsAndDeletes makes folders come and go.
func putsAndDeletes(t *testing.T, s store.Store) {
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			name := fmt.Sprint("runs/r_1/", i%2, "/", i)
			for range 25 {
				if err := put(t.Context(), s, name, "x"); err != nil {
					t.Error(err)
				}
				if err := s.Delete(t.Context(), name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := names(t, s, ""); len(got) > 0 {
		t.Errorf("there are %q", got)
	}
}
