package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/stages"
)

// mapsLines are commands that make one line of each line, or seem to.
var mapsLines = [][]string{
	{"tr", "a-z", "A-Z"},
	{"tr", "-d", "aeiou"},
	{"tr", "-s", "[:blank:]l"},
	{"tr", "-t", "abc", "x"},
	{"tr", "[:upper:]", "[:lower:]"},
	{"cut", "-d,", "-f1,3"},
	{"cut", "-c2-"},
	{"cut", "-b", "1-3", "--complement"},
	{"cut", "-d ", "-f2", "--output-delimiter", "::"},
	{"rev"},
	{"numfmt", "--to=iec"},
	{"numfmt", "--field=2", "--from=si", "--invalid=ignore"},
	{"sed", "s/a/b/"},
	{"sed", "-E", `s/([a-z]+) ([a-z]+)/\2 \U\1/2gI`},
	{"sed", "-e", "s|/|::|g", "-e", `s/^$/empty\t/`},
	{"sed", `s/x*/-/g`},
}

// testMappedLines compares items that go through one process with a process for each.
func testMappedLines(t *testing.T, open func() sandbox.Driver) {
	s := newSession(t, open)
	items := []string{
		"one,two,three\n", "\n", "a b c\n", "ends without", "", "two\nlines\n", "x\x00y,\x00\n", "\xff\xfe,é,x\n", "A B,C\r\n", "1024\n", "x 5K\n",
		strings.Repeat("long,line ", parttest.Times(7_000, 20_000)) + "\n", "/usr/bin/env\n", "last line\n", "aab  bll\n",
	}
	for _, argv := range mapsLines {
		t.Run(strings.ReplaceAll(strings.Join(argv, " "), "/", "_"), func(t *testing.T) {
			c := command(argv[0], argv[1:]...)
			c.MapsLines = true // as its check finds
			var want []result
			for _, item := range items {
				want = append(want, resultOf(t, s, item, c))
			}
			for _, concurrency := range []int{1, 4} {
				var mu sync.Mutex
				var used stages.Usage
				f := mapper(t, s, func(_ int, u stages.Usage) {
					mu.Lock()
					defer mu.Unlock()
					used.BytesIn, used.BytesOut = used.BytesIn+u.BytesIn, used.BytesOut+u.BytesOut
				}, c)
				jobs := newJobs(append(items, append(items, items...)...)...)
				feed := make(chan stages.Job, len(jobs))
				for _, j := range jobs {
					feed <- j
				}
				close(feed)
				f(t.Context(), feed, concurrency)
				var in, out int64
				for i, j := range jobs {
					compareMapped(t, want[i%len(items)], j, c)
					if j.ends != 1 {
						t.Errorf("item %.40q has ended %d times", j.in, j.ends)
					}
					if j.err == nil {
						in, out = in+int64(len(j.in)), out+int64(j.out.Len())
					}
				}
				if used.BytesIn < in || used.BytesOut < out {
					t.Errorf("%d bytes went in and %d came out, and %d and %d are counted", in, out, used.BytesIn, used.BytesOut)
				}
			}
		})
	}
	t.Run("an end", func(t *testing.T) { stopLines(t, s) })
	t.Run("no end", func(t *testing.T) { endlessLine(t, open) })
}

// endlessLine has one line among many take more time than there is: it fails, and no other.
func endlessLine(t *testing.T, open func() sandbox.Driver) {
	c := command("sed", "-E", `s/^(.+)(.+)(.+)\3\2\1$/y/`)
	c.Timeout, c.MapsLines = loopTime, true // in which the other lines have to be done
	items := slices.Repeat([]string{"x y\n"}, 300)
	const endless = 200
	items[endless] = strings.Repeat("ab", 500) + "c\n"
	jobs := newJobs(items...)
	feed := make(chan stages.Job, len(jobs))
	for _, j := range jobs {
		feed <- j
	}
	close(feed)
	mapper(t, newSession(t, open), nil, c)(t.Context(), feed, 2)
	for i, j := range jobs {
		switch {
		case j.ends != 1:
			t.Errorf("item %d has ended %d times", i, j.ends)
		case i == endless:
			if e := asError(t, j.err); e.Code != stages.Timeout || !strings.Contains(e.Msg, loopTime.String()) {
				t.Errorf("the endless line has ended with %v", j.err)
			}
		case j.err != nil || j.out.String() != j.in:
			t.Errorf("item %d: got %q, %v", i, j.out.String(), j.err)
		}
	}
}

// stopLines has one item end all of them: those before it have succeeded, those behind it were not tried.
func stopLines(t *testing.T, s stages.Session) {
	const fails, all = 300, 1000
	f := mapper(t, s, nil, command("tr", "a-z", "A-Z"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	items := make([]string, all)
	for i := range items {
		items[i] = fmt.Sprintf("line %d\n", i)
	}
	jobs := newJobs(items...)
	jobs[fails].refuse = errors.New("no room")
	jobs[fails].onEnd = func(error) { cancel() }
	feed := make(chan stages.Job, all)
	for _, j := range jobs {
		feed <- j
	}
	close(feed)
	f(ctx, feed, 1)
	for i, j := range jobs {
		switch {
		case i < fails && (j.err != nil || j.out.String() != strings.ToUpper(j.in)):
			t.Errorf("item %d: got %q, %v", i, j.out.String(), j.err)
		case i == fails && !errors.Is(j.err, j.refuse):
			t.Errorf("item %d has ended with %v", i, j.err)
		case i > fails && j.err != stages.ErrUntried || j.ends != 1:
			t.Errorf("item %d has ended %d times, with %v", i, j.ends, j.err)
		}
	}
}
