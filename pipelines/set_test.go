package pipelines_test

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/stages"
)

// hanging are tools whose look-up waits for the end of the test.
type hanging struct {
	stages.Tools
	looked func()
	end    <-chan struct{}
	begun  atomic.Int64
}

func (h *hanging) Tool(ctx context.Context, _, _ string) (*stages.Tool, error) {
	h.begun.Add(1)
	h.looked()
	select {
	case <-ctx.Done():
	case <-h.end:
	}
	return nil, io.EOF
}

// TestAbandonedChecks: nobody waits for checks that hang, and these are few, however many pipelines there are.
func TestAbandonedChecks(t *testing.T) {
	store := pipelines.NewStore(t.TempDir())
	for i := range 20 {
		if _, err := store.Save(t.Context(), fmt.Sprintf("p%d", i), []byte(file(said, args("{}"))), 0, person); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	tools := &hanging{looked: cancel, end: t.Context().Done()}
	set := pipelines.NewSet(store, stages.Deps{Tools: tools}, func() uint64 { return 0 })
	list := set.Tools(ctx, pipelines.Operator())
	if len(list) != 20 || list[0].Broken == nil {
		t.Errorf("got %d tools, the first is broken for %v", len(list), list[0].Broken)
	}
	if n := tools.begun.Load(); n > 4 {
		t.Errorf("%d checks have begun", n)
	}
}
