package stages_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/stages"
)

// A recorder remembers of each command that is prepared whether it runs once per item.
type recorder struct {
	stages.Commands

	mu   sync.Mutex
	each map[string]bool // by name; guarded by mu
}

func (r *recorder) Open(ctx context.Context, caller string) (stages.Session, error) {
	s, err := r.Commands.Open(ctx, caller)
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
	return s.Session.Prepare(chain, used)
}

// TestEachCommand: the sandbox is told which commands run once per item.
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
		r := &recorder{Commands: w, each: map[string]bool{}}
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
