//go:build !race

package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/ui"
)

// TestConsoleReplies: each person has a few replies, which no other person pushes out; all take memory of the budget, and give it back.
func TestConsoleReplies(t *testing.T) {
	share := memory.New(1<<20).Share("runs", 1<<20)
	r := newReplies(share)
	try := func(user string, n, size int) *trialReply {
		trial := &trialReply{by: control.Viewer{Caller: user}, request: fmt.Sprint("q_", user, n), begun: time.Now()}
		r.begin(trial)
		r.answer(trial, ui.Reply{Texts: []string{strings.Repeat("x", size)}})
		return trial
	}
	kept := func(user string, n int) int {
		reply, known := r.of(control.Viewer{Caller: user}, fmt.Sprint("q_", user, n))
		if !known {
			return -1
		}
		return len(strings.Join(reply.Texts, ""))
	}
	for n := range mostReplies {
		try("ann", n, 10)
	}
	for n := range 3 * mostReplies {
		try("bob", n, 10)
	}
	for n := range mostReplies {
		if kept("ann", n) != 10 {
			t.Errorf("a reply to ann was pushed out: %d", n)
		}
	}
	if kept("bob", 2*mostReplies-1) != -1 || kept("bob", 2*mostReplies) != 10 {
		t.Errorf("bob has %d and %d", kept("bob", 2*mostReplies-1), kept("bob", 2*mostReplies))
	}
	if _, known := r.of(control.Viewer{Caller: "ann"}, "q_bob10"); known {
		t.Error("ann sees a reply to bob")
	}
	if used := share.Used(); used < 2*mostReplies*replyCost {
		t.Errorf("the replies take %d bytes of the budget", used)
	}
	late := &trialReply{by: control.Viewer{Caller: "ann"}, request: "q_late"}
	r.begin(late)
	r.endUser("ann")
	r.answer(late, ui.Reply{Texts: []string{"late"}})
	if _, known := r.of(control.Viewer{Caller: "ann"}, "q_late"); known {
		t.Error("the reply to a run whose caller has lost access is kept")
	}
	try("bob", 100, 2<<20)
	if n := kept("bob", 100); n < 20 || n > 200 {
		t.Errorf("a reply without room is kept with %d bytes", n)
	}
	for n := range 4000 {
		try(fmt.Sprint("person ", n), n, 0)
	}
	if used := share.Used(); used > share.Limit() || used < share.Limit()/2 {
		t.Errorf("replies to thousands of people take %d bytes", used)
	}
	for n := range 4000 {
		r.endUser(fmt.Sprint("person ", n))
	}
	r.endUser("bob")
	if used := share.Used(); used != 0 || len(r.all) != 0 {
		t.Errorf("%d bytes are left, and %d people", used, len(r.all))
	}
}

// TestOldReplies: the replies of long ago leave their memory to others, and those that are awaited stay.
func TestOldReplies(t *testing.T) {
	share := memory.New(1<<20).Share("runs", 1<<20)
	r := newReplies(share)
	ann, old := control.Viewer{Caller: "ann"}, time.Now().Add(-2*replyAge)
	said, awaited := &trialReply{by: ann, request: "q_said", begun: old}, &trialReply{by: ann, request: "q_awaited", begun: old}
	r.begin(awaited)
	r.begin(said)
	r.answer(said, ui.Reply{Texts: []string{strings.Repeat("x", 1000)}})
	before := share.Used()
	r.begin(&trialReply{by: control.Viewer{Caller: "bob"}, request: "q_bob", begun: time.Now()})
	_, known := r.of(ann, "q_said")
	if _, waits := r.of(ann, "q_awaited"); known || !waits || share.Used() > before-1000 {
		t.Errorf("known %t, waits %t, %d bytes are taken after %d", known, waits, share.Used(), before)
	}
}

// TestRepliesOfGroups: a person who is limited to fewer groups than before sees no replies of those that are left out.
func TestRepliesOfGroups(t *testing.T) {
	r := newReplies(memory.New(1<<20).Share("runs", 1<<20))
	limited := func(groups ...string) control.Viewer {
		return control.Viewer{Caller: "ann", Limited: true, Groups: groups}
	}
	begun := []control.Viewer{{Caller: "ann"}, limited("a"), limited("a", "b")}
	for i, by := range begun {
		r.begin(&trialReply{by: by, request: fmt.Sprint("q_", i), begun: time.Now()})
	}
	for _, test := range []struct {
		viewer control.Viewer
		want   string
	}{
		{control.Viewer{Caller: "ann"}, "true true true"},
		{limited("a"), "false true false"},
		{limited("a", "b"), "false true true"},
		{limited("b"), "false false false"},
		{limited(), "false false false"},
	} {
		var got []string
		for i := range begun {
			_, known := r.of(test.viewer, fmt.Sprint("q_", i))
			got = append(got, fmt.Sprint(known))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%+v: got %v, want %s", test.viewer, got, test.want)
		}
	}
}
