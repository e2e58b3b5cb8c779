package upstream_test

import (
	"context"
	"iter"
	"testing"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/store"
	"github.com/mcsh-dev/mcsh/store/storetest"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/state"
)

// TestSharedShapes: a gateway knows the shapes that another one has learned, of tools whose schema is the same, and of no others.
func TestSharedShapes(t *testing.T) {
	objects := storetest.Directory(t)
	t.Cleanup(func() {
		if err := objects.Close(); err != nil {
			t.Error(err)
		}
	})
	sharing := func(schema string) *upstream.Pool {
		return upstream.NewPool(upstream.Options{
			Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: issuesServer(schema, issuesText).Dial}}}, Shapes: state.NewShared(objects),
		})
	}
	first := sharing(issuesSchema)
	if _, err := first.CallTool(t.Context(), stages.Call{Server: "s", Name: "list_issues"}); err != nil {
		t.Error(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	second, other := sharing(issuesSchema), sharing(`{"type":"object","properties":{"state":{"type":"integer"}}}`)
	eventually(t, "the other gateway knows the shape", func() bool { return shapeOf(second.Catalog(t.Context())[0]) == issuesShape })
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	shapeOf(other.Catalog(t.Context())[0]) // which begins to read
	if err := other.Close(); err != nil {  // and waits for that
		t.Error(err)
	}
	if got := shapeOf(other.Catalog(t.Context())[0]); got == issuesShape {
		t.Errorf("with another schema: got %s", got)
	}
}

// hung is a store that does not answer.
type hung struct{ store.Store }

func (hung) List(ctx context.Context, _ string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		<-ctx.Done()
		yield(store.Object{}, context.Cause(ctx))
	}
}

// TestSharedShapesHung: nobody waits for a store that does not answer, neither a list nor a call.
func TestSharedShapesHung(t *testing.T) {
	t.Parallel() // it waits
	p := staticPool(t, upstream.Options{Shapes: state.NewShared(hung{})}, upstream.Server{Name: "s", Dial: issuesServer(issuesSchema, issuesText).Dial})
	if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "list_issues"}); err != nil {
		t.Error(err)
	}
	eventually(t, "it is learned here", func() bool { return shapeOf(p.Catalog(t.Context())[0]) == issuesShape })
}
