package upstream

import (
	"testing"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/questions"
	"github.com/mcsh-dev/mcsh/upstream/results"
)

// TestCallerOfTask: a kept task is asked for on the session that began it, also by another caller.
func TestCallerOfTask(t *testing.T) {
	task := &results.Task{ID: "t"}
	begun := task.Handle("s", questions.Declared{Form: true, Sampling: true})
	for _, c := range []struct {
		name string
		call stages.Call
		want any
	}{
		{"nobody", stages.Call{}, nil},
		{"a caller", stages.Call{Asker: &stages.Asker{URL: true}}, questions.Declared{URL: true}},
		{"a task without a caller", stages.Call{Task: &stages.Task{Handle: begun}}, questions.Declared{Form: true, Sampling: true}},
		{"a task of another caller", stages.Call{Task: &stages.Task{Handle: begun}, Asker: &stages.Asker{URL: true}}, questions.Declared{Form: true, Sampling: true}},
		{"a task of nobody", stages.Call{Task: &stages.Task{Handle: task.Handle("s", questions.Declared{})}, Asker: &stages.Asker{URL: true}}, questions.Declared{}},
		{"a new task", stages.Call{Task: &stages.Task{}, Asker: &stages.Asker{URL: true}}, questions.Declared{URL: true}},
		{"a handle that is not valid", stages.Call{Task: &stages.Task{Handle: "{"}, Asker: &stages.Asker{URL: true}}, questions.Declared{URL: true}},
	} {
		if got := forCall(t.Context(), c.call).Value(callerKey{}); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
