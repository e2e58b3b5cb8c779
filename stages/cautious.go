package stages

import (
	"context"
	"encoding/hex"
	"time"
)

// cautious reports whether the run looks for an item that ends its process. Meanwhile it runs one item at a time, and notes each before it
// begins. A run that continues this one after the end of the process does not run the item again.
func (r *Run) cautious() bool { return time.Now().Before(r.cautiousUntil) }

// knowsFatal reports whether earlier runs have ended with an item.
func (l *effectLog) knowsFatal() bool { return l != nil && l.fatal != nil }

// most returns how many items may run at once.
func (q *queue) most() int {
	if q.e.r.cautious() {
		return 1
	}
	return q.room
}

// guard notes an item of a cautious run until over is called. It refuses one with which an earlier run has ended.
func (e *each) guard(ctx context.Context, it *item) (over func(), err error) {
	over = func() {}
	l, cautious := e.r.effects, e.r.cautious()
	if l == nil || e.log == nil || !cautious && !l.knowsFatal() {
		return over, nil
	}
	key := itemKeyOf(it.element)
	note := pastEffect{Fatal: true, Key: effectKey(string(e.log.place), hex.EncodeToString(key[:]))}
	switch {
	case l.fatal[note.Key]:
		err := Errorf(Denied, `leave the item out, or skip it with "on_error": "skip"`, "the item is not run again: its worker has ended while it ran")
		err.repeats = true
		return over, err
	case !cautious:
		return over, nil
	}
	intent, err := l.begin(withHeaders(ctx, headers{item: it}), note)
	return func() { l.unmade(intent) }, err
}
