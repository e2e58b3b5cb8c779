package workspace_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcsh-dev/mcsh/workspace"
)

// countOf returns the count of a root, -1 where there is none.
func countOf(t *testing.T, root string) int64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".mcsh/written"))
	if errors.Is(err, os.ErrNotExist) {
		return -1
	}
	var n int64
	if _, serr := fmt.Sscanf(string(text), "%d", &n); err != nil || serr != nil {
		t.Fatalf("%q: %v, %v", text, err, serr)
	}
	return n
}

// stored returns the sizes of what tee has written in a root and its mirrors.
func stored(t *testing.T, root string) (n int64) {
	t.Helper()
	for _, data := range files(t, root) {
		n += int64(len(data))
	}
	return n
}

// TestCount: the count grows by what each save writes, to the file and the mirror, and lasts.
func TestCount(t *testing.T) {
	d, root := openRoot(t)
	if err := os.WriteFile(filepath.Join(root, "linked"), []byte("0123456789"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(root, "linked"), filepath.Join(root, "other name")); err != nil {
		t.Fatal(err)
	}
	var want int64
	for _, s := range []struct {
		path, text string
		behind     bool
		adds       int64
	}{
		{"a", "12345", false, 10 + 80}, // the line of the mirror is at most so long
		{"a", "12345", false, 10 + 80},
		{"a", "12345", true, 10 + 2}, // with a newline before it
		{"a", "", true, 0},
		{"a", "1234\n", true, 10 + 2},
		{"a", "12345", true, 10},
		{"new", "1", true, 2},
		{"linked", "12345", true, 10 + 2 + 10}, // what it holds is written anew
		{"linked", "12345", true, 10 + 2},
		{"empty", "", false, 80},
	} {
		d.Close()
		d = open(t, root)
		var asked, total int64
		_, err := save(t, d, s.path, s.text, workspace.SaveOptions{Append: s.behind, Charge: func(adds, all int64) error {
			asked, total = asked+adds, all
			return nil
		}})
		want += s.adds
		if got := countOf(t, root); err != nil || asked != s.adds || total != want || got != want {
			t.Errorf("saving %q: %v; asked for %d, %d in all, counted %d; want %d, %d", s.path, err, asked, total, got, s.adds, want)
		}
	}
}

// TestChargeRefuses: what is refused is not written, and of data without end little is read.
func TestChargeRefuses(t *testing.T) {
	full := errors.New("it is full")
	for _, most := range []int64{0, 1 << 20, 200<<10 + 2*5} {
		d, root := openRoot(t)
		if _, err := save(t, d, "a", "12345", appends); err != nil {
			t.Fatal(err)
		}
		before := files(t, root)
		read := &counter{r: io.LimitReader(zeros{}, 1<<30)}
		_, err := d.Save(t.Context(), "a", read, workspace.SaveOptions{Charge: func(adds, total int64) error {
			if total > most {
				return full
			}
			return nil
		}})
		if !errors.Is(err, full) || read.n > most+64<<10 {
			t.Errorf("at most %d: %v, %d bytes read", most, err, read.n)
		}
		if after := files(t, root); len(after) != len(before) || after["a"] != "12345" || countOf(t, root) != 10 {
			t.Errorf("at most %d: %d files, was %d, %d bytes counted", most, len(after), len(before), countOf(t, root))
		}
	}
}

// TestChargeNewline: the newline before appended data is charged for, in the file and in the mirror, with the data or not
// at all.
func TestChargeNewline(t *testing.T) {
	full := errors.New("it is full")
	for most, want := range map[int64]string{20: "12345", 21: "12345", 22: "12345\n67890"} {
		d, root := openRoot(t)
		if _, err := save(t, d, "a", "12345", appends); err != nil {
			t.Fatal(err)
		}
		_, err := save(t, d, "a", "67890", workspace.SaveOptions{Append: true, Charge: func(_, total int64) error {
			if total > most {
				return full
			}
			return nil
		}})
		if errors.Is(err, full) != (most < 22) {
			t.Errorf("at most %d: %v", most, err)
		}
		got := files(t, root)
		if got["a"] != want || got[".mcsh/audit/a"] != want || countOf(t, root) != int64(2*len(want)) {
			t.Errorf("at most %d: %q, %d bytes counted, want %q", most, got, countOf(t, root), want)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// TestChargeTogether has two gateways save in one workspace: they stay within the limit together, whatever each of them
// saw when it began.
func TestChargeTogether(t *testing.T) {
	_, root := openRoot(t)
	const most, each = 10_000, 500
	var all sync.WaitGroup
	for i := range 2 {
		d := open(t, root)
		for j := range 20 {
			all.Go(func() {
				r, err := d.Save(t.Context(), fmt.Sprint(i, "/", j), strings.NewReader(strings.Repeat("x", each)), workspace.SaveOptions{Append: true, Charge: func(_, total int64) error {
					if total > most {
						return io.ErrShortWrite
					}
					return nil
				}})
				if err == nil {
					r.Close()
				} else if !errors.Is(err, io.ErrShortWrite) {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	if n, count := stored(t, root), countOf(t, root); n > most || count != n {
		t.Errorf("%d bytes are there, %d counted, at most %d are allowed", n, count, most)
	}
}

// TestCountLost: a count that is missing or broken is made anew of the mirrors, and is never too small.
func TestCountLost(t *testing.T) {
	for name, broken := range map[string]*string{
		"missing": nil, "empty": new(string), "cut": text("0000000000000000"), "wrong": text("00000000000000000001 00000000\n"),
		"negative": text("-0000000000000000001 00000000\n"), "words": text("no count\n"),
	} {
		t.Run(name, func(t *testing.T) {
			d, root := openRoot(t)
			for i := range 5 {
				if _, err := save(t, d, fmt.Sprint("dir/", i), strings.Repeat("x", 1000), appends); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(root, ".mcsh/written")
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if broken != nil {
				if err := os.WriteFile(path, []byte(*broken), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var total int64
			_, err := save(t, d, "dir/5", "12345", workspace.SaveOptions{Append: true, Charge: func(_, all int64) error { total = all; return nil }})
			if want := int64(2 * (5*1000 + 5)); err != nil || total != want || countOf(t, root) != want {
				t.Errorf("%v: %d in all, counted %d, want %d", err, total, countOf(t, root), want)
			}
		})
	}
}

func text(s string) *string { return &s }
