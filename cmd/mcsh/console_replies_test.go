package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/ui"
)

// TestConsoleReplies: each person has a few replies, which no other person pushes out; all take memory of the budget, and give it back.
func TestConsoleReplies(t *testing.T) {
	share := memory.New(1<<20).Share("runs", 1<<20)
	r := newReplies(share)
	try := func(user string, n, size int) *trialReply {
		trial := &trialReply{user: user, request: fmt.Sprint("q_", user, n)}
		r.begin(trial)
		r.answer(trial, ui.Reply{Texts: []string{strings.Repeat("x", size)}})
		return trial
	}
	kept := func(user string, n int) int {
		reply, known := r.of(user, fmt.Sprint("q_", user, n))
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
	if _, known := r.of("ann", "q_bob10"); known {
		t.Error("ann sees a reply to bob")
	}
	if used := share.Used(); used < 2*mostReplies*replyCost {
		t.Errorf("the replies take %d bytes of the budget", used)
	}
	late := &trialReply{user: "ann", request: "q_late"}
	r.begin(late)
	r.endUser("ann")
	r.answer(late, ui.Reply{Texts: []string{"late"}})
	if _, known := r.of("ann", "q_late"); known {
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
