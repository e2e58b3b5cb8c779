package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// A lineJob is an item of a [stages.MapFilter], with what became of it.
type lineJob struct {
	in    string
	out   bytes.Buffer
	ends  int
	err   error
	onEnd func(error)
}

func (j *lineJob) Input() []byte               { return []byte(j.in) }
func (j *lineJob) Write(p []byte) (int, error) { return j.out.Write(p) }

func (j *lineJob) End(err error) {
	j.ends, j.err = j.ends+1, err
	if j.onEnd != nil {
		j.onEnd(err)
	}
}

// A liner is a worker whose only program does to each line what its first letter says: f fails, 0 makes nothing of it, h makes
// a line without an end, l a long one, s takes more time than lines have that go together, t more than any has. The others
// are written in capitals.
type liner struct{ runs, late, lines atomic.Int64 }

func (l *liner) run(s *wire.Stream, c wire.Chain) wire.Outcome {
	in, _ := io.ReadAll(struct{ io.Reader }{s})
	l.runs.Add(1)
	u := wire.Usage{In: int64(len(in)), Elapsed: time.Millisecond}
	failed := func(f wire.Failure) wire.Outcome {
		return wire.Outcome{Failure: &f, Usage: []wire.Usage{u}}
	}
	for line := range strings.Lines(string(in)) {
		l.lines.Add(1)
		out := strings.ToUpper(line)
		switch line[0] {
		case 'f':
			return failed(wire.Failure{Reason: wire.Exit, Status: 2, Stderr: "no " + line, Sample: []byte(line)})
		case '0':
			out = ""
		case 'h':
			out = strings.TrimSuffix(out, "\n")
		case 'l':
			out = strings.Repeat("L", 2<<20) + "\n"
		case 's', 't':
			if line[0] == 't' || c.Commands[0].Batch > 0 {
				l.late.Add(1)
				return failed(wire.Failure{Reason: wire.Timeout})
			}
		}
		n, _ := io.WriteString(s, out)
		u.Out += int64(n)
	}
	return wire.Outcome{Usage: []wire.Usage{u}}
}

// open opens a session with l, and returns its program as a filter for many items and for one.
func (l *liner) open(t testing.TB, used func(int, stages.Usage)) (stages.MapFilter, stages.Filter) {
	t.Helper()
	d := &scripted{run: func(ctx context.Context, s *wire.Stream, c wire.Chain) wire.Outcome {
		if argv := c.Commands[0].Argv; len(argv) == 2 && argv[1] == "--version" {
			_, _ = io.WriteString(s, "tr (GNU coreutils) 9.1\n")
			return wire.Outcome{Usage: []wire.Usage{{}}}
		}
		return l.run(s, c)
	}, hello: wire.Hello{
		Profile: wire.Dynamic, Landlock: 7, Seccomp: true, NoNewPrivs: true, Programs: []wire.Found{{Name: "tr", Path: "/usr/bin/tr"}},
	}}
	p, err := sandbox.New(t.Context(), sandbox.Options{Driver: d, Warm: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	s, err := p.Open(t.Context(), "somebody")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c := stages.Command{Name: "tr", Args: []string{"a-z", "A-Z"}, Each: true}
	many, err := s.Map(c, used)
	if err != nil || many == nil {
		t.Fatalf("Map: %v", err)
	}
	one, err := s.Prepare([]stages.Command{c}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return many, one
}

// mapLines runs items together, and finds each ended once.
func mapLines(t testing.TB, f stages.MapFilter, ctx context.Context, concurrency int, jobs []*lineJob) {
	t.Helper()
	feed := make(chan stages.Job, len(jobs))
	for _, j := range jobs {
		feed <- j
	}
	close(feed)
	f(ctx, feed, concurrency)
	for i, j := range jobs {
		if j.ends != 1 {
			t.Errorf("item %d, %.20q, has ended %d times", i, j.in, j.ends)
		}
	}
}

func codeOf(err error) string {
	var e *stages.Error
	if errors.As(err, &e) {
		return fmt.Sprintf("%s %s %s %s %q", e.Code, e.Place, e.Msg, e.Hint, e.Sample)
	}
	return fmt.Sprint(err)
}

// FuzzBatch: lines together give what each gives by itself, and are counted once.
func FuzzBatch(f *testing.F) {
	f.Add("aaaa", 1)
	f.Add("aaaafaaaaaaaaaahaaaaaa", 2)
	f.Add("0a0hhaN\x00ef", 4)
	f.Add("aslatas"+strings.Repeat("af", 70), 3)
	f.Add(strings.Repeat("a", 300)+"s"+strings.Repeat("b", 300), 1)
	f.Add(strings.Repeat("f", 100), 2)
	f.Fuzz(func(t *testing.T, kinds string, concurrency int) {
		if len(kinds) > 700 || strings.Count(kinds, "l") > 3 {
			return
		}
		var jobs []*lineJob
		for i, kind := range []byte(kinds) {
			in := fmt.Sprintf("%c%d\n", kind, i)
			switch kind {
			case 'N':
				in = in[:len(in)-1] // no line
			case 'E':
				in = ""
			case 'B':
				in = strings.Repeat("b", 80<<10) + "\n"
			}
			jobs = append(jobs, &lineJob{in: in})
		}
		var mu sync.Mutex
		var used stages.Usage
		l := &liner{}
		many, one := l.open(t, func(_ int, u stages.Usage) {
			mu.Lock()
			defer mu.Unlock()
			used.BytesIn, used.BytesOut = used.BytesIn+u.BytesIn, used.BytesOut+u.BytesOut
		})
		mapLines(t, many, t.Context(), 1+(concurrency&7), jobs)
		var in, out int64
		for i, j := range jobs {
			var want bytes.Buffer
			err := one(t.Context(), strings.NewReader(j.in), &want)
			if codeOf(err) != codeOf(j.err) || err == nil && !bytes.Equal(want.Bytes(), j.out.Bytes()) {
				t.Errorf("item %d, %.20q: got %.20q, %s, want %.20q, %s", i, j.in, j.out.Bytes(), codeOf(j.err), want.Bytes(), codeOf(err))
			}
			in, out = in+int64(len(j.in)), out+int64(want.Len())
		}
		if used.BytesIn != in || used.BytesOut != out {
			t.Errorf("%d bytes went in and %d came out, and %d and %d are counted", in, out, used.BytesIn, used.BytesOut)
		}
	})
}

// TestBatchInVain: what goes wrong in one process costs little more than a process for each.
func TestBatchInVain(t *testing.T) {
	for _, test := range []struct {
		name, items      string
		runs, late, most int64 // at most; most is for lines that were read
	}{
		{"all well", strings.Repeat("a", 512), 6, 0, 512},
		{"one fails", strings.Repeat("a", 200) + "f" + strings.Repeat("a", 311), 32, 0, 1200},
		{"one takes long", strings.Repeat("a", 200) + "s" + strings.Repeat("a", 55), 257, 1, 512},
		{"one takes too long", strings.Repeat("a", 200) + "t" + strings.Repeat("a", 55), 257, 2, 512},
		{"one is long", strings.Repeat("a", 200) + "l" + strings.Repeat("a", 55), 257, 0, 512},
		{"all fail", strings.Repeat("f", 512), 530, 0, 530},
		{"every other one fails", strings.Repeat("af", 256), 900, 0, 1200},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := &liner{}
			many, _ := l.open(t, nil)
			var jobs []*lineJob
			for _, kind := range test.items {
				jobs = append(jobs, &lineJob{in: string(kind) + "\n"})
			}
			mapLines(t, many, t.Context(), 1, jobs)
			if l.runs.Load() > test.runs || l.late.Load() > test.late || l.lines.Load() > test.most {
				t.Errorf("%d lines took %d processes, that have read %d lines, and %d timeouts, want at most %d, %d and %d",
					len(jobs), l.runs.Load(), l.lines.Load(), l.late.Load(), test.runs, test.most, test.late)
			}
		})
	}
}

// TestBatchApart: lines that take too much together are as many at once as the for_each says, in any batch.
func TestBatchApart(t *testing.T) {
	const concurrency, all = 4, 64
	var now, peak atomic.Int64
	full := make(chan struct{})
	var meet sync.Once
	l := &liner{}
	many, _ := l.open(t, nil)
	jobs := make([]*lineJob, all)
	for i := range jobs {
		jobs[i] = &lineJob{in: "s\n", onEnd: func(error) {
			n := now.Add(1)
			defer now.Add(-1)
			for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
			}
			if n == concurrency {
				meet.Do(func() { close(full) })
			}
			select {
			case <-full:
			case <-time.After(time.Minute): // fails below
			}
		}}
	}
	mapLines(t, many, t.Context(), concurrency, jobs)
	if peak.Load() != concurrency {
		t.Errorf("%d items were under way at a time, want %d", peak.Load(), concurrency)
	}
}

// TestBatchEnds has one item end all of them, in one process with others and by itself: none behind it was begun or
// counted.
func TestBatchEnds(t *testing.T) {
	for _, kind := range []string{"a", "f", "s", "t"} {
		for _, at := range []int{0, 1, 100, 255, 256, 400} {
			l := &liner{}
			var used atomic.Int64
			many, _ := l.open(t, func(int, stages.Usage) { used.Add(1) })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			jobs := make([]*lineJob, 600)
			for i := range jobs {
				jobs[i] = &lineJob{in: "a\n"}
			}
			jobs[at].in = kind + "\n"
			jobs[at].onEnd = func(error) { cancel() }
			mapLines(t, many, ctx, 1, jobs)
			for i, j := range jobs {
				switch fails := kind == "f" || kind == "t"; {
				case i < at && (j.err != nil || j.out.String() != "A\n"):
					t.Errorf("%s at %d: item %d has ended with %v", kind, at, i, j.err)
				case i == at && (j.err != nil) != fails:
					t.Errorf("%s at %d: it has ended with %v", kind, at, j.err)
				case i > at && fails && j.err != stages.ErrUntried:
					t.Errorf("%s at %d: item %d has ended with %v", kind, at, i, j.err)
				}
			}
			if kind == "f" && used.Load() > int64(at)+1 {
				t.Errorf("%s at %d: %d items are counted", kind, at, used.Load())
			}
		}
	}
}

// TestBatchClosed: items of a session that was closed, or has lost its worker, end.
func TestBatchClosed(t *testing.T) {
	l := &liner{}
	d := &scripted{hello: wire.Hello{
		Profile: wire.Dynamic, Landlock: 7, Seccomp: true, NoNewPrivs: true, Programs: []wire.Found{{Name: "tr", Path: "/usr/bin/tr"}},
	}}
	var p *sandbox.Pool
	var s stages.Session
	d.run = func(ctx context.Context, stream *wire.Stream, c wire.Chain) wire.Outcome {
		if s == nil {
			_, _ = io.WriteString(stream, "tr (GNU coreutils) 9.1\n")
			return wire.Outcome{Usage: []wire.Usage{{}}}
		}
		if l.runs.Load() == 3 {
			go s.Close()
			<-ctx.Done()
		}
		return l.run(stream, c)
	}
	p = newPool(t, d, sandbox.Options{Warm: -1})
	s, err := p.Open(t.Context(), "somebody")
	if err != nil {
		t.Fatal(err)
	}
	many, err := s.Map(stages.Command{Name: "tr", Args: []string{"a", "b"}, Each: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	jobs := make([]*lineJob, 2000)
	for i := range jobs {
		jobs[i] = &lineJob{in: "a\n"}
	}
	mapLines(t, many, t.Context(), 2, jobs)
	lost := 0
	for i, j := range jobs {
		var e *stages.Error
		switch {
		case j.err == nil && j.out.String() == "A\n":
		case errors.As(j.err, &e) && e.Code == stages.Internal:
			lost++
		default:
			t.Errorf("item %d: got %q, %v", i, j.out.String(), j.err)
		}
	}
	if lost == 0 || lost == len(jobs) {
		t.Errorf("%d items of %d were lost", lost, len(jobs))
	}
}

// TestBatchOfItems: whatever a worker says of items that go together, each item ends once, with what it comes to alone.
func TestBatchOfItems(t *testing.T) {
	items := func(all ...string) string {
		var b []byte
		for _, item := range all {
			b = wire.AppendAnswer(b, 0, []byte(item))
		}
		return string(b)
	}
	exit := &wire.Failure{Reason: wire.Exit, Status: 5}
	for name, test := range map[string]struct {
		says    string
		failure *wire.Failure
	}{
		"nothing":          {"", nil},
		"nothing, failing": {"", exit},
		"one":              {items("0+"), nil},
		"one, failing":     {items("0+"), exit},
		"one and a half":   {items("0+") + "\x00\x00", exit},
		"a large item":     {"\xff\xff\xff\xff", nil},
		"too many":         {strings.Repeat(items("x"), 300), nil},
		"too much":         {strings.Repeat("x", 2<<20), nil},
		"all, failing":     {"*", exit},
		"killed":           {items("0+"), &wire.Failure{Reason: wire.MemoryLimit}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &scripted{hello: wire.Hello{Profile: wire.Dynamic, Landlock: 7, Seccomp: true, NoNewPrivs: true, Programs: []wire.Found{{Name: "jq"}}}}
			d.run = func(_ context.Context, s *wire.Stream, c wire.Chain) wire.Outcome {
				in, _ := io.ReadAll(struct{ io.Reader }{s})
				if c.Commands[0].Batch == 0 {
					_, _ = s.Write(append(in, '+'))
					return wire.Outcome{Usage: []wire.Usage{{}}}
				}
				var first, all []byte
				for len(in) > 0 {
					item, rest, _ := wire.CutItem(in)
					if first == nil {
						first = item
					}
					all, in = wire.AppendAnswer(all, 0, []byte(string(item)+"+")), rest
				}
				_, _ = io.WriteString(s, strings.NewReplacer("0", string(first), "*", string(all)).Replace(test.says))
				return wire.Outcome{Usage: []wire.Usage{{}}, Failure: test.failure}
			}
			s, err := newPool(t, d, sandbox.Options{Warm: -1}).Open(t.Context(), "somebody")
			if err != nil {
				t.Fatal(err)
			}
			many, err := s.Map(stages.Command{Name: "jq", Args: []string{"."}, Each: true}, nil)
			if err != nil {
				t.Fatal(err)
			}
			jobs := make([]*lineJob, 100)
			for i := range jobs {
				jobs[i] = &lineJob{in: string(rune('A' + i%26))}
			}
			mapLines(t, many, t.Context(), 2, jobs)
			for i, j := range jobs {
				if j.err != nil || j.out.String() != j.in+"+" {
					t.Errorf("item %d: got %q, %v", i, j.out.String(), j.err)
				}
			}
		})
	}
}
