package stages

import (
	"sync"
	"sync/atomic"
)

// A tally counts what became of the items of a for_each, over all runs of it.
type tally struct {
	ok      atomic.Int64 // items that succeeded
	failed  atomic.Int64 // items that failed, whatever on_error says
	skipped atomic.Int64 // of those, items left out
	retried atomic.Int64 // items that succeeded, but not at the first attempt
	retries atomic.Int64 // attempts after the first

	mu       sync.Mutex
	messages messages // of items that failed; guarded by mu
}

// again counts an attempt after the first.
func (t *tally) again() { t.retries.Add(1) }

// success counts an item that succeeded.
func (t *tally) success(attempts int) {
	t.ok.Add(1)
	if attempts > 1 {
		t.retried.Add(1)
	}
}

// failure counts an item that failed.
func (t *tally) failure(msg string, skipped bool) {
	t.failed.Add(1)
	if skipped {
		t.skipped.Add(1)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.messages.add(msg, 1)
}

// report writes the counts into the line of the stage.
func (t *tally) report(r *StageReport) {
	r.OK, r.Failed, r.Skipped = t.ok.Load(), t.failed.Load(), t.skipped.Load()
	r.Retried, r.Retries = t.retried.Load(), t.retries.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Messages, r.OtherMessages = t.messages.most(shownMessages)
}
