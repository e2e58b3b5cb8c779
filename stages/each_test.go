package stages_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/stages"
)

// A recorder remembers of each command that is prepared whether it runs once per item.
type recorder struct {
	stages.CommandPlan

	mu   sync.Mutex
	each map[string]bool // by name; guarded by mu

	said string // by each command, on standard error
}

func (r *recorder) Plan(_, _, _ string) stages.CommandPlan { return r }

func (r *recorder) Open(ctx context.Context) (stages.Session, error) {
	s, err := r.CommandPlan.Open(ctx)
	return recording{s, r}, err
}

type recording struct {
	stages.Session
	r *recorder
}

func (s recording) Prepare(chain []stages.Command, used func(int, stages.Usage)) (stages.Filter, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	for _, c := range chain {
		s.r.each[c.Name] = c.Each
	}
	return s.Session.Prepare(chain, func(i int, u stages.Usage) {
		u.Said = s.r.said
		used(i, u)
	})
}

// TestWarning: what a command that succeeds writes to standard error is a note of its stage, once.
func TestWarning(t *testing.T) {
	w := newWorld()
	d := w.deps()
	d.Commands = &recorder{CommandPlan: w, each: map[string]bool{}, said: `odd "text"`}
	report, err := compiled(t, d, `[{"type":"command","command":"cat","for_each":true}]`).
		Run(t.Context(), strings.NewReader("\"a\"\n\"b\"\n"), new(strings.Builder), stages.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`it wrote to standard error: "odd \"text\""`}, report.Stages[0].Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// TestEachCommand: the sandbox gets the commands that run once per item as such.
func TestEachCommand(t *testing.T) {
	for _, test := range []struct {
		pipeline string
		want     map[string]bool
	}{
		{`[{"type":"command","command":"cat"}]`, map[string]bool{"cat": false}},
		{`[{"type":"command","command":"cat"},{"type":"command","command":"upper","for_each":true}]`, map[string]bool{"cat": false, "upper": true}},
		{`[{"type":"for_each","stages":[{"type":"command","command":"cat"},{"type":"command","command":"upper"}]}]`, map[string]bool{"cat": true, "upper": true}},
	} {
		w := newWorld()
		r := &recorder{CommandPlan: w, each: map[string]bool{}}
		d := w.deps()
		d.Commands = r
		if _, err := compiled(t, d, test.pipeline).Run(t.Context(), strings.NewReader("\"a\"\n"), new(strings.Builder), stages.RunOptions{}); err != nil {
			t.Errorf("%s: %v", test.pipeline, err)
		}
		if diff := cmp.Diff(test.want, r.each); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.pipeline, diff)
		}
	}
}

// TestNestedFlagAlone: a for_each around a tool with the flag does not run the tool's calls side by side unasked either.
func TestNestedFlagAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		post := w.add("post", writes, "x", func(context.Context, map[string]any) (string, error) {
			time.Sleep(time.Second)
			return "{}", nil
		})
		if _, _, err := w.run(t, `[{"type":"for_each","stages":[{"type":"command","command":"cat"},`+postEach+`]}]`, "1\n2\n3\n"); err != nil {
			t.Fatal(err)
		}
		if got := post.peak.Load(); got != 1 {
			t.Errorf("%d calls at once", got)
		}
	})
}
