package upstream

import (
	"encoding/json"
	"testing"
	"unicode"
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
		if task, err := readTask(raw); err == nil {
			if p := task.pause(3); p < leastPoll || p > mostPoll {
				t.Errorf("the interval is %s", p)
			}
			questions, err := readInputRequests(task.requests)
			if len(questions) > maxAtOnce {
				t.Errorf("there are %d questions", len(questions))
			}
			for _, q := range questions {
				if err == nil && !json.Valid([]byte(`"`+string(q.key)+`"`)) {
					t.Errorf("the name of a question is %q", q.key)
				}
			}
		}
		_, err := resultOf(raw, false)
		started, ok := err.(answeredTask)
		if !ok {
			return
		}
		for _, c := range started.task.id {
			if unicode.IsControl(c) {
				t.Errorf("the id is %q", started.task.id)
			}
		}
		again, err := taskOf(started.task.handle("s", declared{}), "s")
		if err != nil || again.id != started.task.id || again.inline != started.task.inline {
			t.Errorf("%+v became %+v, %v", started.task, again, err)
		}
	})
}
