package stages_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"golang.org/x/tools/txtar"

	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
)

// A mapping session runs commands on many items.
type mapping struct{ *session }

// Map implements [stages.Session].
func (s mapping) Map(c stages.Command, used func(int, stages.Usage)) (stages.MapFilter, error) {
	filter, err := s.Prepare([]stages.Command{c}, used)
	return func(ctx context.Context, jobs <-chan stages.Job, concurrency int) {
		var lanes sync.WaitGroup
		for range concurrency {
			lanes.Go(func() {
				for j := range jobs {
					if ctx.Err() != nil {
						j.End(stages.ErrUntried)
						continue
					}
					j.End(filter(ctx, bytes.NewReader(j.Input()), j))
				}
			})
		}
		lanes.Wait()
	}, err
}

// TestMappedCases: cases of for_each with commands come to the same when the session takes many items.
func TestMappedCases(t *testing.T) {
	files, _ := filepath.Glob("testdata/run/*.txtar")
	n := 0
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pipeline, _ := part(archive, "pipeline")
		want, ok := part(archive, "output")
		if !ok || !strings.Contains(pipeline, "for_each") || !strings.Contains(pipeline, `"command"`) || os.Getenv("UPDATE") != "" {
			continue
		}
		n++
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			var got []txtar.File
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.maps = true
				got = runCase(t, w, archive)
			})
			if out, _ := part(&txtar.Archive{Files: got}, "output"); out != want {
				t.Errorf("got %q, want %q: %s", out, want, got)
			}
		})
	}
	if n < 10 {
		t.Errorf("%d cases, want more", n)
	}
}

// commandMixture runs random items through a command one by one and many at a time, and compares what comes out.
func commandMixture(t *testing.T, random *rand.Rand) {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	var input strings.Builder
	for i := range random.IntN(200) {
		input.WriteString(pick(fmt.Sprint(i), fmt.Sprintf(`{"id": %d}`, i), `"bad"`, "text", "", "\xff\x00", `"`+strings.Repeat("x", random.IntN(3000))+`"`, "null") + "\n")
	}
	policy := fmt.Sprintf(`"on_error":%q,"with_item":%v,"collect":%q,"concurrency":%d`, pick("skip", "collect"), random.IntN(2) == 0, pick("array", "lines"), 1+random.IntN(9))
	command := pick(`"fail-at","args":["\"bad\""]`, `"upper"`, `"drop"`, `"append","args":["tail\nof several"]`)
	stage := pick(`{"type":"command","command":`+command+`,"for_each":true,`+policy+`}`, `{"type":"for_each","stages":[{"type":"command","command":`+command+`}],`+policy+`}`)
	end := pick("", "", `,{"type":"command","command":"head","args":["7"]}`)
	synctest.Test(t, func(t *testing.T) {
		var outs, reports [2]string
		for i := range outs {
			w := newWorld()
			w.maps = i == 1
			out, report, err := w.run(t, "["+stage+end+"]", "\n"+input.String())
			outs[i] = fmt.Sprint(out, err)
			if end == "" { // how much was begun is a matter of chance else
				reports[i] = counted(t, report.Stages, "")
			}
		}
		if outs[0] != outs[1] || reports[0] != reports[1] {
			t.Errorf("%s: %s\n%s\ninput:\n%q", stage, firstDifference(outs[1], outs[0]), firstDifference(reports[1], reports[0]), input.String())
		}
	})
}

// TestMappedFails: the first item that fails ends the others, and is the one that is named. Of the others only those were
// cancelled that ran beside it, of four at a time; those on their way were not tried.
func TestMappedFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.maps = true
		_, _, err := w.run(t, `[{"type":"command","command":"fail-at","args":["17"],"for_each":true}]`, numbered())
		e, ok := err.(*stages.Error)
		if !ok || e.Item != 18 || string(e.Sample) != "17" || e.Place != "1" || e.Code != stages.CommandFailed || e.Failed != 1 || e.Started-e.Done-e.Failed > 3 {
			t.Errorf("got %+v", err)
		}
	})
}

func numbered() string {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

// bugs is a world whose sessions fail in their own code with the third of many items.
type bugs struct {
	*world
	fail func(stages.Job)
}

func (b bugs) Plan(_, _, _ string) stages.CommandPlan { return bugPlan{b.world, b} }

type bugPlan struct {
	*world
	b bugs
}

func (p bugPlan) Open(context.Context) (stages.Session, error) { return p.b, nil }

func (b bugs) Prepare([]stages.Command, func(int, stages.Usage)) (stages.Filter, error) {
	return nil, nil
}
func (b bugs) Keep(context.Context, int, string, io.Reader) error { return nil }
func (b bugs) Close() error                                       { return nil }

func (b bugs) Map(stages.Command, func(int, stages.Usage)) (stages.MapFilter, error) {
	return func(_ context.Context, jobs <-chan stages.Job, _ int) {
		n := 0
		for j := range jobs {
			if n++; n == 3 {
				b.fail(j)
				continue
			}
			j.End(nil)
		}
	}, nil
}

// rude is an error that cannot be looked at.
type rude struct{ error }

func (rude) As(any) bool { panic("rude") }

// TestMappedPanic: what panics while many items are under way fails its run and nothing else, as what runs one item does.
func TestMappedPanic(t *testing.T) {
	for name, fail := range map[string]func(stages.Job){
		"rude": func(j stages.Job) { j.End(rude{io.ErrUnexpectedEOF}) },
		"boom": func(stages.Job) { panic("boom") },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			d := w.deps()
			d.Commands = bugs{w, fail}
			p := compiled(t, d, `[{"type":"command","command":"upper","for_each":true}]`)
			_, err := p.Run(t.Context(), strings.NewReader(numbered()), io.Discard, stages.RunOptions{})
			if e, ok := err.(*stages.Error); !ok || e.Code != stages.Internal || !strings.Contains(e.Msg, "internal error: "+name) {
				t.Errorf("%s: got %v", name, err)
			}
		})
	}
}

// TestMappedWaits: an item goes on as soon as it is there, and its result comes out while the next one is waited for.
func TestMappedWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.maps = true
		p := compiled(t, w.deps(), `[{"type":"command","command":"upper","for_each":true}]`)
		in, feed := io.Pipe()
		out, results := io.Pipe()
		go func() {
			_, err := p.Run(t.Context(), in, results, stages.RunOptions{})
			results.CloseWithError(err)
		}()
		if _, err := io.WriteString(feed, "\"w\"\n"); err != nil { // what begins a line is read with it
			t.Fatal(err)
		}
		for i := range 10 {
			line := fmt.Sprintf("\"a%d\"\n", i)
			if _, err := io.WriteString(feed, line); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			got := make([]byte, len("\"w\"\n"))
			if i > 0 {
				got = make([]byte, len(line))
			}
			if _, err := io.ReadFull(out, got); err != nil {
				t.Fatal(err)
			}
		}
		feed.Close()
		if rest, err := io.ReadAll(out); err != nil || string(rest) != "\"A9\"\n" {
			t.Errorf("the rest is %q, %v", rest, err)
		}
	})
}

// TestMappedResumes: what a for_each of a command had completed is not run again when it is taken up.
func TestMappedResumes(t *testing.T) {
	k, _ := newFlaky(t, runs.Options{}, "")
	k.maps = true
	each := `{"type":"command","command":"fail-at","args":["60"],"for_each":true}`
	e := k.failedRun(t, numbers100, each)
	if e.Item != 60 {
		t.Fatalf("got %v at item %d", e, e.Item)
	}
	out, report, err := k.run(t, resume(e.Run, `"on_error":"skip"`))
	if err != nil || strings.Count(out, "\n") != 99 || strings.Contains(out, "60") {
		t.Errorf("got %v, %q", err, out)
	}
	last := report.Stages[len(report.Stages)-1]
	if last.Resumed != int64(e.Done) || last.Items != 100 || last.OK != int64(99-e.Done) || e.Done == 0 {
		t.Errorf("the report has %d items resumed, %d ok, of %d, after %d", last.Resumed, last.OK, last.Items, e.Done)
	}
}
