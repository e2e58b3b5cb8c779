package runs_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/runs"
)

// data is n bytes that tell where they are.
func data(seed uint64, n int) []byte {
	p := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = r.Read(p)
	return p
}

// keep makes a run with one output of p, written in pieces.
func keep(c *runs.Caller, name string, p []byte, piece int) (id string) {
	id, end := c.Begin()
	defer end()
	out, ended := c.Create(id, name, false)
	for rest := p; len(rest) > 0; {
		n := min(piece, len(rest))
		_, _ = out.Write(rest[:n])
		rest = rest[n:]
	}
	ended("")
	return id
}

func read(t *testing.T, c *runs.Caller, id, name string) (all []byte, incomplete string) {
	t.Helper()
	r, incomplete, release := c.Open(id, name)
	defer release()
	if r == nil {
		return nil, incomplete
	}
	all, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	return all, incomplete
}

// TestKeeps: what was written comes back byte for byte, however it was written and wherever it is.
func TestKeeps(t *testing.T) {
	s := runs.New(runs.Options{Dir: t.TempDir()})
	defer s.Close()
	c := s.Of("me")
	for _, n := range []int{0, 1, 511, 512, 513, 1<<20 - 1, 1 << 20, 1<<20 + 1, 1<<20 + 64<<10, 3 << 20, 3<<20 + 17} {
		for _, piece := range []int{7777, 32 << 10, 10 << 20} {
			want := data(uint64(n), n)
			id := keep(c, "1", want, piece)
			got, incomplete := read(t, c, id, "1")
			if !bytes.Equal(got, want) || got == nil || incomplete != "" {
				t.Errorf("%d bytes in pieces of %d: got %d bytes, %q", n, piece, len(got), incomplete)
			}
			r, _, release := c.Open(id, "1")
			for range 50 {
				from := rand.IntN(n + 1)
				part := make([]byte, rand.IntN(200_000))
				m, err := r.ReadAt(part, int64(from))
				if end := min(from+len(part), n); !bytes.Equal(part[:m], want[from:end]) || (err == io.EOF) != (from+len(part) > n || from == n && n < from+len(part)) {
					t.Fatalf("%d bytes from %d of %d: got %d, %v", len(part), from, n, m, err)
				}
			}
			release()
		}
	}
}

// TestCallers: another caller's run is as unknown as one that never was, whatever is done with its id.
func TestCallers(t *testing.T) {
	s := runs.New(runs.Options{Dir: t.TempDir()})
	defer s.Close()
	mine, other := s.Of("me"), s.Of("you")
	id := keep(mine, "1", []byte("secret"), 10)
	if !regexp.MustCompile(`^r_[a-z2-7]{26}$`).MatchString(id) {
		t.Errorf("the id is %q", id)
	}
	for _, id := range []string{id, "r_never", ""} {
		if r, why, release := other.Open(id, "1"); r != nil || why != "" {
			t.Errorf("another caller opens %q: %v, %q", id, r, why)
		} else {
			release()
		}
		to, end := other.Begin()
		if other.Share(id, "1", to, "1") {
			t.Errorf("another caller shares %q", id)
		}
		if mine.Share(id, "1", to, "1") {
			t.Error("an output is put into another caller's run")
		}
		end()
	}
	if got, _ := read(t, mine, id, "1"); string(got) != "secret" {
		t.Errorf("the caller itself reads %q", got)
	}
}

// TestIncomplete: what is not whole is not kept, and the reason is; a partial output keeps its beginning.
func TestIncomplete(t *testing.T) {
	s := runs.New(runs.Options{Dir: t.TempDir(), Output: 100 << 10, Head: 10 << 10})
	defer s.Close()
	c := s.Of("me")
	id, end := c.Begin()
	cut, endCut := c.Create(id, "cut", false)
	long, endLong := c.Create(id, "long", false)
	partial, endPartial := c.Create(id, "partial", true)
	open, _ := c.Create(id, "open", false)
	record := data(1, 30<<10)
	for range 4 {
		_, _ = long.Write(record)
		_, _ = partial.Write(record)
	}
	_, _ = cut.Write(record)
	_, _ = open.Write(record)
	endCut("the next stage had read enough")
	endLong("")
	endPartial("")
	end()
	for name, want := range map[string]string{
		"cut": "the next stage had read enough", "long": "it is longer than 100 KiB", "open": "has not ended", "none": "",
	} {
		if got, why := read(t, c, id, name); got != nil || !strings.Contains(why, want) || want == "" && why != "" {
			t.Errorf("%s: got %d bytes, %q", name, len(got), why)
		}
	}
	if got, why := read(t, c, id, "partial"); !bytes.Equal(got, bytes.Repeat(record, 3)) || !strings.Contains(why, "longer than") {
		t.Errorf("partial: got %d bytes, %q", len(got), why)
	}
}

// TestEviction: whole runs give way, those first that were not used for longest; an output that is read, or that
// another run has too, stays.
func TestEviction(t *testing.T) {
	dir := t.TempDir()
	s := runs.New(runs.Options{Dir: dir, Total: 1 << 20, Head: 1 << 10})
	defer s.Close()
	c := s.Of("me")
	want := data(3, 200<<10)
	first, second, third := keep(c, "1", want, 1<<20), keep(c, "1", want, 1<<20), keep(c, "1", want, 1<<20)
	reading, _, release := c.Open(first, "1")
	sharing, end := c.Begin()
	if !c.Share(second, "1", sharing, "1") {
		t.Fatal("the second run cannot be shared")
	}
	end()
	_, _ = read(t, c, first, "1") // so that it is younger than the third
	for range 2 {
		keep(c, "1", want, 1<<20)
	}
	if got, why := read(t, c, third, "1"); got != nil || why != "" {
		t.Errorf("the run that was not used for longest is there: %d bytes, %q", len(got), why)
	}
	for range 3 {
		keep(c, "1", want, 1<<20)
	}
	if got, _ := io.ReadAll(reading); !bytes.Equal(got, want) {
		t.Errorf("what is read while its run is forgotten has changed: %d bytes", len(got))
	}
	release()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("files with names: %v, %v", entries, err)
	}
}

// TestUnderWay: runs that are under way are not evicted; a run that finds no room gets an error.
func TestUnderWay(t *testing.T) {
	s := runs.New(runs.Options{Dir: t.TempDir(), Total: 512 << 10, Head: 1 << 10})
	defer s.Close()
	c := s.Of("me")
	old := keep(c, "1", data(1, 100<<10), 4096)
	one, endOne := c.Begin()
	out, ended := c.Create(one, "1", false)
	_, _ = out.Write(data(1, 400<<10))
	two := keep(c, "1", data(1, 200<<10), 4096)
	ended("")
	endOne()
	if got, _ := read(t, c, old, "1"); got != nil {
		t.Error("the run that had ended did not give way")
	}
	if got, why := read(t, c, two, "1"); got != nil || !strings.Contains(why, "the store was full") {
		t.Errorf("the second run: %d bytes, %q", len(got), why)
	}
	if got, why := read(t, c, one, "1"); len(got) != 400<<10 {
		t.Errorf("the first run: %d bytes, %q", len(got), why)
	}
}

// TestTime: a run is gone when it was not used for as long as runs are kept, and leaves nothing.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := runs.New(runs.Options{Dir: t.TempDir()})
		defer s.Close()
		c := s.Of("me")
		id := keep(c, "1", data(1, 2<<20), 1<<20)
		other := keep(c, "1", []byte("x"), 1)
		for range 3 {
			time.Sleep(29 * time.Minute)
			if got, _ := read(t, c, id, "1"); len(got) != 2<<20 {
				t.Fatalf("a run that is used is gone: %d bytes", len(got))
			}
		}
		if got, _ := read(t, c, other, "1"); got != nil {
			t.Error("a run that nobody used is there")
		}
		time.Sleep(31 * time.Minute)
		synctest.Wait()
		if bytes, memory, n := s.Usage(); bytes != 0 || memory != 0 || n != 0 {
			t.Errorf("left are %d bytes, %d in memory, %d runs", bytes, memory, n)
		}
	})
}

// TestNoRoomForFiles: without a directory for files small outputs are kept, and of the others the reason.
func TestNoRoomForFiles(t *testing.T) {
	s := runs.New(runs.Options{Dir: "/nonexistent/secret"})
	defer s.Close()
	c := s.Of("me")
	small, large := keep(c, "1", data(1, 1000), 100), keep(c, "1", data(1, 2<<20), 1<<20)
	if got, why := read(t, c, small, "1"); len(got) != 1000 {
		t.Errorf("small: %d bytes, %q", len(got), why)
	}
	if got, why := read(t, c, large, "1"); got != nil || !strings.Contains(why, "cannot be written: no such file") || strings.Contains(why, "secret") {
		t.Errorf("large: %d bytes, %q", len(got), why)
	}
	if bytes, _, _ := s.Usage(); bytes != 1000 {
		t.Errorf("%d bytes are kept, want 1000", bytes)
	}
}

// TestAtOnce: many runs at a time, readers among them, while runs are forgotten; nothing is mixed up and nothing leaks.
func TestAtOnce(t *testing.T) {
	s := runs.New(runs.Options{Dir: t.TempDir(), Total: 8 << 20, Head: 8 << 10, Memory: 256 << 10, Runs: 100})
	c := s.Of("me")
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			for j := range parttest.Times(3, 12) {
				want := data(uint64(i*100+j), 100_000+i*1000)
				id := keep(c, "1", want, 9999)
				var readers sync.WaitGroup
				for range 3 {
					readers.Go(func() {
						got, why := read(t, c, id, "1")
						if got != nil && !bytes.Equal(got, want) {
							t.Errorf("run %d.%d: what is read is not what was written (%q)", i, j, why)
						}
					})
				}
				readers.Wait()
			}
		})
	}
	all.Wait()
	if bytes, _, n := s.Usage(); bytes > 8<<20 || n > 100 || n == 0 {
		t.Errorf("%d bytes of %d runs", bytes, n)
	}
	s.Close()
	if bytes, memory, n := s.Usage(); bytes != 0 || memory != 0 || n != 0 {
		t.Errorf("closed, it keeps %d bytes, %d in memory, of %d runs", bytes, memory, n)
	}
}

// TestRoom: what the memory of the process has no room for is kept on the disk, and all that was taken is given back.
func TestRoom(t *testing.T) {
	room := memory.New(100<<10).Share("runs", 100<<10)
	s := runs.New(runs.Options{Dir: t.TempDir(), Share: room})
	c := s.Of("me")
	text := data(1, 30<<10)
	for range 8 {
		id, end := c.Begin()
		out, ended := c.Create(id, "1", false)
		out.Write(text)
		ended("")
		end()
		if n := room.Used(); n > room.Limit() {
			t.Errorf("%d bytes are taken", n)
		}
		kept, why, release := c.Open(id, "1")
		if kept == nil {
			t.Logf("not kept: %s", why)
			continue
		}
		if got, err := io.ReadAll(kept); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%d bytes come back, %v", len(got), err)
		}
		release()
	}
	if _, inMemory, _ := s.Usage(); inMemory == 0 || inMemory != room.Used() {
		t.Errorf("%d bytes are in memory, %d are taken", inMemory, room.Used())
	}
	s.Close()
	if n := room.Used(); n != 0 {
		t.Errorf("%d bytes are still taken", n)
	}
}

// FuzzAccounting does what the bytes say: runs that begin, write, end, are read, are shared. The bounds always hold,
// what is read is what was written, and in the end nothing is left.
func FuzzAccounting(f *testing.F) {
	for i := range 8 {
		f.Add(data(uint64(i), 300))
	}
	f.Fuzz(func(t *testing.T, ops []byte) {
		const total, memory = 700 << 10, 50 << 10
		m := &model{t: t, s: runs.New(runs.Options{Dir: t.TempDir(), Total: total, Memory: memory, Head: 20 << 10, Output: 200 << 10, Runs: 9})}
		m.c = m.s.Of("me")
		for ops = ops[:min(len(ops), 900)]; len(ops) >= 3; {
			m.step(ops[0], int(ops[1]), int(ops[2]))
			ops = ops[3:]
			used, held, n := m.s.Usage()
			if used > total || held > memory+int64(len(m.open))*(64<<10) || n > 9 || used < 0 || held < 0 {
				t.Fatalf("%d bytes, %d in memory, %d runs, %d of them under way", used, held, n, len(m.open))
			}
		}
		for len(m.open) > 0 {
			m.step(2, 0, 0)
		}
		for _, release := range m.releases {
			release()
		}
		m.s.Close()
		if used, held, n := m.s.Usage(); used != 0 || held != 0 || n != 0 {
			t.Fatalf("left are %d bytes, %d in memory, %d runs", used, held, n)
		}
	})
}

// model is what the store of a fuzz run should hold.
type model struct {
	t        *testing.T
	s        *runs.Store
	c        *runs.Caller
	open     []*underWay
	done     []*underWay
	releases []func()
}

type underWay struct {
	id      string
	end     func()
	out     io.Writer
	ended   func(string)
	written []byte
	partial bool
}

func (m *model) step(op byte, a, b int) {
	switch op % 5 {
	case 0:
		r := &underWay{partial: a%4 == 0}
		r.id, r.end = m.c.Begin()
		r.out, r.ended = m.c.Create(r.id, "1", r.partial)
		m.open = append(m.open, r)
	case 1:
		if len(m.open) == 0 {
			return
		}
		r := m.open[a%len(m.open)]
		p := data(uint64(a), b*b)
		_, _ = r.out.Write(p)
		r.written = append(r.written, p...)
	case 2:
		if len(m.open) == 0 {
			return
		}
		i := a % len(m.open)
		r := m.open[i]
		m.open = append(m.open[:i], m.open[i+1:]...)
		r.ended([]string{"", "", "cut"}[b%3])
		r.end()
		m.done = append(m.done, r)
	case 3:
		if len(m.done) > 0 {
			m.look(m.done[a%len(m.done)], b%2 == 0)
		}
	case 4:
		if len(m.done) > 0 && len(m.open) > 0 {
			m.c.Share(m.done[a%len(m.done)].id, "1", m.open[b%len(m.open)].id, fmt.Sprint(a))
		}
	}
}

func (m *model) look(r *underWay, hold bool) {
	data, why, release := m.c.Open(r.id, "1")
	if data == nil {
		release()
		return
	}
	if hold {
		m.releases = append(m.releases, release)
	} else {
		defer release()
	}
	got, err := io.ReadAll(data)
	if err != nil || why == "" && !bytes.Equal(got, r.written) || why != "" && (!r.partial || !bytes.HasPrefix(r.written, got)) {
		m.t.Fatalf("read %d bytes of %d: %v, %q", len(got), len(r.written), err, why)
	}
}

// TestClaim: one run continues another, until it gives that up; other callers see nothing of it. A run that is under way
// has itself.
func TestClaim(t *testing.T) {
	s := runs.New(runs.Options{Dir: t.TempDir()})
	defer s.Close()
	me := s.Of("me")
	id := keep(me, "a", data(1, 10), 10)
	open, end := me.Begin()
	for _, tt := range []struct{ run, by, want string }{
		{id, "", ""},
		{id, "r_1", "r_1"},
		{id, "r_2", "r_1"},
		{id, "", "r_1"},
		{"r_none", "r_1", ""},
		{open, "", open},
		{open, "r_1", open},
	} {
		if got, _ := claim(t, me, tt.run, tt.by); got != tt.want {
			t.Errorf("%v: got %q", tt, got)
		}
	}
	if got, _ := claim(t, s.Of("you"), id, ""); got != "" {
		t.Errorf("another caller sees %q", got)
	}
	end()
	_, release := claim(t, me, open, "r_3")
	release()
	if got, _ := claim(t, me, open, "r_4"); got != "r_4" {
		t.Errorf("what was given up belongs to %q", got)
	}
	release()
	if got, _ := claim(t, me, open, ""); got != "r_4" {
		t.Errorf("what was given up twice belongs to %q", got)
	}
}

func claim(t *testing.T, c *runs.Caller, id, by string) (holder string, release func()) {
	t.Helper()
	holder, release, err := c.Claim(t.Context(), id, by)
	if err != nil {
		t.Fatal(err)
	}
	return holder, release
}

// TestLate: nothing is added to an output that has ended, and nothing is shared of a run that has not.
func TestLate(t *testing.T) {
	s := runs.New(runs.Options{Dir: t.TempDir()})
	defer s.Close()
	c := s.Of("me")
	id, end := c.Begin()
	out, ended := c.Create(id, "1", false)
	_, _ = out.Write([]byte("whole"))
	other, endOther := c.Begin()
	defer endOther()
	if c.Share(id, "1", other, "open") {
		t.Error("an output that has not ended was shared")
	}
	ended("")
	_, _ = out.Write(data(1, 3<<20))
	if c.Share(id, "1", other, "under way") {
		t.Error("an output of a run that has not ended was shared")
	}
	end()
	if got, why := read(t, c, id, "1"); string(got) != "whole" || why != "" {
		t.Errorf("got %d bytes, %q", len(got), why)
	}
	if !c.Share(id, "1", other, "ended") {
		t.Error("an output of a run that has ended was not shared")
	}
	if bytes, _, _ := s.Usage(); bytes > 1<<10 {
		t.Errorf("%d bytes are kept", bytes)
	}
}
