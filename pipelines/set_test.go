package pipelines_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
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

// away are tools of servers that do not answer.
type away struct{ stages.Tools }

func (away) Tool(context.Context, string, string) (*stages.Tool, error) {
	return nil, stages.Errorf(stages.ServerUnavailable, "", "it is away")
}

// callTo is a plan that calls a saved pipeline.
func callTo(name string) string {
	return `"pipeline": [{"type": "tool", "server": "pipelines", "name": "` + name + `"}]`
}

// TestCircleOfVersions: a pipeline that calls itself through earlier versions is refused, and no check waits for itself.
func TestCircleOfVersions(t *testing.T) {
	store := pipelines.NewStore(t.TempDir())
	for _, one := range []struct{ name, plan string }{{"c", callTo("a")}, {"c", plan}, {"b", callTo("c@1")}, {"b", plan}, {"a", callTo("b@1")}} {
		if _, err := store.Save(t.Context(), one.name, []byte(file(said, one.plan)), pipelines.Any, person); err != nil {
			t.Fatal(err)
		}
	}
	found, err := pipelines.NewSet(store, stages.Deps{}, func() uint64 { return 0 }).Find(t.Context(), "a", pipelines.Operator())
	if err != nil {
		t.Fatal(err)
	}
	const want = "the saved pipeline calls itself: a calls b calls c calls a"
	if got := fmt.Sprint(found.Broken); !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestManyVersions: a pipeline calls no more earlier versions than a check can read.
func TestManyVersions(t *testing.T) {
	store := pipelines.NewStore(t.TempDir())
	var calls []string
	for i := range 60 {
		calls = append(calls, fmt.Sprintf(`{"type": "tool", "server": "pipelines", "name": "p@%d"}`, i+1))
	}
	if _, err := store.Save(t.Context(), "a", []byte(file(said, `"pipeline": [`+strings.Join(calls, ",")+`]`)), 0, person); err != nil {
		t.Fatal(err)
	}
	found, err := pipelines.NewSet(store, stages.Deps{}, func() uint64 { return 0 }).Find(t.Context(), "a", pipelines.Operator())
	if got := fmt.Sprint(err, found); err != nil || !strings.Contains(fmt.Sprint(found.Broken), "it calls more than 50 earlier versions") {
		t.Errorf("got %s", got)
	}
}

// waiting are tools of a server that is away, as look-ups find out at the end.
type waiting struct {
	stages.Tools
	begun chan<- struct{}
	end   <-chan struct{}
}

func (w waiting) Tool(context.Context, string, string) (*stages.Tool, error) {
	w.begun <- struct{}{}
	<-w.end
	return nil, stages.Errorf(stages.ServerUnavailable, "", "it is away")
}

// TestChangeDuringCheck: a file that changes while it is checked is checked anew, beside the check that is under way.
func TestChangeDuringCheck(t *testing.T) {
	store := pipelines.NewStore(t.TempDir())
	begun, end := make(chan struct{}), make(chan struct{})
	set := pipelines.NewSet(store, stages.Deps{Tools: waiting{begun: begun, end: end}}, func() uint64 { return 0 })
	var checks sync.WaitGroup
	for i := range 2 {
		if _, err := store.Save(t.Context(), "p", []byte(file(said, args(fmt.Sprintf(`{"a": %d}`, i)))), pipelines.Any, person); err != nil {
			t.Fatal(err)
		}
		checks.Go(func() {
			if found, err := set.Find(t.Context(), "p", pipelines.Operator()); err != nil || found.Broken == nil {
				t.Errorf("got %+v, %v", found, err)
			}
		})
		<-begun
	}
	close(end)
	checks.Wait()
}

// TestHiddenServers: who may know of some servers only finds no pipeline of others, not even by a suggestion, a broken file, a version
// that is not kept, or before it is checked.
func TestHiddenServers(t *testing.T) {
	dir := t.TempDir()
	store := pipelines.NewStore(dir)
	call := func(server string) string {
		return `"pipeline": [{"type": "tool", "server": "` + server + `", "name": "x"}]`
	}
	for name, text := range map[string]string{
		"open_one": file(said, call("open")), "vault_one": file(said, call("vault")), "broken": `{"pipeline": [{"server": "vault"`,
		"by_another": file(said, callTo("vault_one")), "circle_one": file(said, callTo("circle_two")),
		"circle_two": file(said, `"pipeline": [{"type": "tool", "server": "pipelines", "name": "circle_one"}, {"type": "tool", "server": "vault", "name": "x"}]`),
	} {
		if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set := pipelines.NewSet(store, stages.Deps{Tools: away{}}, func() uint64 { return 0 })
	v := pipelines.Viewer{Shows: func(server string) bool { return server == "open" }}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, ctx := range map[string]context.Context{"before the checks": ended, "after them": t.Context()} {
		if list := set.Tools(ctx, v); len(list) != 1 || list[0].Name != "open_one" {
			t.Errorf("%s: got %d tools: %+v", name, len(list), list)
		}
	}
	for asked, want := range map[string]string{
		"vault_one": "", "vault_one@1": "", "vault_one@7": "", "vault_on": "", "by_another": "", "circle_one": "", "broken": "", "open_on": `; did you mean "open_one"?`,
	} {
		_, err := set.Find(t.Context(), asked, v)
		if text := fmt.Sprintf("there is no such saved pipeline: %q%s", asked, want); err == nil || err.Error() != text {
			t.Errorf("%s: got %v, want %s", asked, err, text)
		}
	}
}
