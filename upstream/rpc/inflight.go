package rpc

import "sync"

// maxUnanswered is how many requests are remembered that ended without a response. With so many, no question is attributed any
// more.
const maxUnanswered = 1 << 10

// InFlight are the requests of a session in whose middle the server may ask, and the tasks that somebody waits for. Most
// questions over one connection name no request: there must be only one then, and none that has ended without a response, since
// the server may still be working on it. A task that nobody waits for makes nothing uncertain: the protocol demands that its
// questions name it.
type InFlight struct {
	mu         sync.Mutex
	open       map[*Request]int // of which, and of requests about which, so many have not ended
	unanswered map[int64]bool   // ids that ended without a response
}

// asker is the request or task in whose middle the server asks, if it asks in the middle of r; nil: nobody answers.
func (r *Request) asker() *Request {
	if r.About != nil {
		return r.About
	}
	if r.Ask == nil {
		return nil
	}
	return r
}

// Begin notes that a request begins.
func (f *InFlight) Begin(r *Request) {
	if r = r.asker(); r == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		f.open, f.unanswered = map[*Request]int{}, map[int64]bool{}
	}
	f.open[r]++
}

// End notes that a request has ended. over says that the server has answered it, or has never seen it: it does not ask about it
// any more.
func (f *InFlight) End(r *Request, id int64, over bool) {
	asker := r.asker()
	if asker == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leave(asker)
	if !over && r.About == nil && len(f.unanswered) < maxUnanswered {
		f.unanswered[id] = true
	}
}

// leave notes the end of one request of a kind. f.mu is held.
func (f *InFlight) leave(asker *Request) {
	if f.open[asker]--; f.open[asker] <= 0 {
		delete(f.open, asker)
	}
}

// Settle forgets a request that has ended without a response: the server has answered it after all, or has never seen it.
func (f *InFlight) Settle(id int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.unanswered) < maxUnanswered {
		delete(f.unanswered, id)
	}
}

// Hold notes that somebody waits for a task. release ends that.
func (f *InFlight) Hold(task *Request) (release func()) {
	f.Begin(task)
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.leave(task)
	})
}

// ofTask is the task with an id, if somebody waits for it.
func (f *InFlight) ofTask(id string) *Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	for r := range f.open {
		if r.Task == id {
			return r
		}
	}
	return nil
}

// only is the only request in whose middle the server can ask now, nil if that is not certain.
func (f *InFlight) only() *Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.open) != 1 || len(f.unanswered) > 0 {
		return nil
	}
	for r := range f.open {
		return r
	}
	return nil
}

// hasUnanswered reports whether a request has ended without a response. Then nothing is certain until the server answers it.
func (f *InFlight) hasUnanswered() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.unanswered) > 0
}
