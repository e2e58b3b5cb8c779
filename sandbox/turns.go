package sandbox

import (
	"context"
	"slices"
	"sync"
)

// turns shares places out among callers. A caller gets another place only while fewer are its own than are free, so that
// some are left for callers that have none; callers that wait take turns. A caller without a name has only the places to
// wait for.
type turns struct {
	mu      sync.Mutex
	places  int
	held    map[string]int // by caller
	used    int            // sum of held
	waiting map[string][]chan struct{}
	next    []string // the callers in waiting, in the order of their turns
}

func newTurns(places int) *turns {
	return &turns{places: places, held: map[string]int{}, waiting: map[string][]chan struct{}{}}
}

// take waits for a place. give returns it and may be called more than once.
func (t *turns) take(ctx context.Context, caller string) (give func(), err error) {
	give = sync.OnceFunc(func() { t.give(caller) })
	granted := make(chan struct{})
	t.mu.Lock()
	if len(t.waiting[caller]) == 0 {
		t.next = append(t.next, caller)
	}
	t.waiting[caller] = append(t.waiting[caller], granted)
	t.grant()
	t.mu.Unlock()
	select {
	case <-granted:
		return give, nil
	default:
	}
	select {
	case <-granted:
		return give, nil
	case <-ctx.Done():
	}
	if !t.leave(caller, granted) {
		give() // the grant came at the last moment
	}
	return nil, context.Cause(ctx)
}

// fits reports whether a caller may have one more place. t.mu is held.
func (t *turns) fits(caller string) bool {
	free := t.places - t.used
	return free > 0 && (caller == "" || t.held[caller] == 0 || t.held[caller] < free)
}

// grant gives what is free to those who wait. t.mu is held.
func (t *turns) grant() {
	for {
		i := slices.IndexFunc(t.next, t.fits)
		if i < 0 {
			return
		}
		caller := t.next[i]
		t.next = slices.Delete(t.next, i, i+1)
		queue := t.waiting[caller]
		close(queue[0])
		t.held[caller]++
		t.used++
		if t.waiting[caller] = queue[1:]; len(queue) > 1 {
			t.next = append(t.next, caller)
		} else {
			delete(t.waiting, caller)
		}
	}
}

// leave ends the waiting for a grant. It returns false if the grant has come.
func (t *turns) leave(caller string, granted chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue := t.waiting[caller]
	i := slices.Index(queue, granted)
	if i < 0 {
		return false
	}
	t.waiting[caller] = slices.Delete(queue, i, i+1)
	if len(queue) == 1 {
		delete(t.waiting, caller)
		t.next = slices.DeleteFunc(t.next, func(name string) bool { return name == caller })
	}
	return true
}

func (t *turns) give(caller string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used--
	if t.held[caller]--; t.held[caller] == 0 {
		delete(t.held, caller)
	}
	t.grant()
}

// inUse is how many places are held.
func (t *turns) inUse() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.used
}
