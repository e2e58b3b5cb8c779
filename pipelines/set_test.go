package pipelines_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
		"by_another": file(said, `"pipeline": [{"type": "tool", "server": "pipelines", "name": "vault_one"}]`),
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
		"vault_one": "", "vault_one@1": "", "vault_one@7": "", "vault_on": "", "by_another": "", "broken": "", "open_on": `; did you mean "open_one"?`,
	} {
		_, err := set.Find(t.Context(), asked, v)
		if text := fmt.Sprintf("there is no such saved pipeline: %q%s", asked, want); err == nil || err.Error() != text {
			t.Errorf("%s: got %v, want %s", asked, err, text)
		}
	}
}
