package upstream

import (
	"testing"

	"github.com/mcsh-dev/mcsh/stages"
)

// TestCallerOfTask: a task that is kept is asked for on the session that it was begun on, whoever waits for it now.
func TestCallerOfTask(t *testing.T) {
	task := &task{id: "t"}
	begun := task.handle("s", declared{Form: true, Sampling: true})
	for _, c := range []struct {
		name string
		call stages.Call
		want any
	}{
		{"nobody", stages.Call{}, nil},
		{"a caller", stages.Call{Asker: &stages.Asker{URL: true}}, declared{URL: true}},
		{"a task without a caller", stages.Call{Task: &stages.Task{Handle: begun}}, declared{Form: true, Sampling: true}},
		{"a task of another caller", stages.Call{Task: &stages.Task{Handle: begun}, Asker: &stages.Asker{URL: true}}, declared{Form: true, Sampling: true}},
		{"a task of nobody", stages.Call{Task: &stages.Task{Handle: task.handle("s", declared{})}, Asker: &stages.Asker{URL: true}}, declared{}},
		{"a new task", stages.Call{Task: &stages.Task{}, Asker: &stages.Asker{URL: true}}, declared{URL: true}},
		{"a handle that is not valid", stages.Call{Task: &stages.Task{Handle: "{"}, Asker: &stages.Asker{URL: true}}, declared{URL: true}},
	} {
		if got := forCall(t.Context(), c.call).Value(callerKey{}); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
