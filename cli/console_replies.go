package cli

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/ui"
)

// Bounds of the replies that are remembered.
const (
	mostReplies   = 8         // of one person; a new one pushes out the oldest
	mostReplyText = 256 << 10 // bytes of one
	replyCost     = 1 << 10   // bytes of one beside its texts
	replyAge      = time.Hour // after which the memory of one is needed more elsewhere
)

// replies are the last replies to the runs of each person. They take memory of a share, and one that does not fit is not kept: nobody
// pushes out the replies of others.
type replies struct {
	memory ui.Memory

	mu  sync.Mutex
	all map[string][]*trialReply // by person, the oldest first; guarded by mu
}

// A trialReply is the reply to a run; nil: it is not there yet.
type trialReply struct {
	by      control.Viewer // who has begun the run
	request string
	begun   time.Time

	// Guarded by mu of the replies:
	reply *ui.Reply
	size  int64 // that is taken
}

func newReplies(memory ui.Memory) *replies {
	return &replies{memory: memory, all: map[string][]*trialReply{}}
}

// begin remembers a run whose reply comes later.
func (r *replies) begin(t *trialReply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire()
	list := r.all[t.by.Caller]
	if len(list) >= mostReplies {
		r.release(list[0])
		list = slices.Delete(list, 0, 1)
	}
	if r.take(t, replyCost+int64(len(t.by.Caller)+len(t.request)+len(strings.Join(t.by.Groups, "")))) {
		list = append(list, t)
	}
	r.set(t.by.Caller, list)
}

// answer keeps the reply to a run that is remembered.
func (r *replies) answer(t *trialReply, reply ui.Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.all[t.by.Caller], t) {
		return
	}
	n := int64(0)
	for _, text := range reply.Texts {
		n += int64(len(text))
	}
	if !r.take(t, n) {
		reply.Texts = []string{"The reply is not kept: the gateway has no memory for it at present. The page Runs shows the run."}
	}
	t.reply = &reply
}

// expire forgets the replies of long ago. r.mu is held.
func (r *replies) expire() {
	for user, list := range r.all {
		r.set(user, slices.DeleteFunc(list, func(t *trialReply) bool {
			old := t.reply != nil && time.Since(t.begun) > replyAge
			if old {
				r.release(t)
			}
			return old
		}))
	}
}

// of returns the reply to a run of a person; nil: it is not there yet. False: no such run is remembered, or the person may not know of
// it any more.
func (r *replies) of(v control.Viewer, request string) (*ui.Reply, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.all[v.Caller] {
		if t.request == request && v.Reaches(t.by.Limited, t.by.Groups) {
			return t.reply, true
		}
	}
	return nil, false
}

// endUser forgets the replies of a person.
func (r *replies) endUser(user string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.all[user] {
		r.release(t)
	}
	delete(r.all, user)
}

// take takes memory for a reply. r.mu is held.
func (r *replies) take(t *trialReply, n int64) bool {
	fits := r.memory.Try(n)
	if fits {
		t.size += n
	}
	return fits
}

// release gives the memory of a reply back. r.mu is held.
func (r *replies) release(t *trialReply) {
	r.memory.Give(t.size)
	t.size = 0
}

// set replaces the replies of a person. r.mu is held.
func (r *replies) set(user string, list []*trialReply) {
	if r.all[user] = list; len(list) == 0 {
		delete(r.all, user)
	}
}

// cutText cuts a text to so many bytes, without keeping the rest of it in memory.
func cutText(text string, most int) string {
	if short := texts.Cut(text, most); len(short) < len(text) {
		return strings.Clone(short)
	}
	return text
}
