package results

import (
	"encoding/json"
	"testing"
	"unicode"

	"github.com/mcsh-dev/mcsh/upstream/questions"
)

// FuzzTask reads what servers say of tasks: whatever that is, an id can be sent, an interval is within its bounds, and what is
// kept of a task stands for the same task.
func FuzzTask(f *testing.F) {
	for _, seed := range []string{
		`{"taskId":"t","status":"working","pollInterval":1000,"statusMessage":"half"}`,
		`{"taskId":"é\u0000","status":7,"pollIntervalMs":1e999}`, `{"taskId":"a","pollInterval":-1,"pollIntervalMs":"NaN"}`,
		`{"resultType":"task","taskId":"t","status":"completed","result":{"content":[]}}`, `{"task":{"taskId":"t"}}`,
		`{"taskId":"t","status":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}},"\u12":5}}`, `{`, `[]`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if task, err := ReadTask(raw); err == nil {
			if p := task.Pause(3); p < leastPoll || p > mostPoll {
				t.Errorf("the interval is %s", p)
			}
			questions, err := ReadInputRequests(task.Requests)
			if len(questions) > maxAtOnce {
				t.Errorf("there are %d questions", len(questions))
			}
			for _, q := range questions {
				if err == nil && !json.Valid([]byte(`"`+string(q.Key)+`"`)) {
					t.Errorf("the name of a question is %q", q.Key)
				}
			}
		}
		_, err := Of(raw, false)
		started, ok := err.(Started)
		if !ok {
			return
		}
		for _, c := range started.Task.ID {
			if unicode.IsControl(c) {
				t.Errorf("the id is %q", started.Task.ID)
			}
		}
		again, err := TaskOf(started.Task.Handle("s", questions.Declared{}), "s")
		if err != nil || again.ID != started.Task.ID || again.Inline != started.Task.Inline {
			t.Errorf("%+v became %+v, %v", started.Task, again, err)
		}
	})
}
