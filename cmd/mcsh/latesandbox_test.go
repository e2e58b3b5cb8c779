package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
)

// A backend that has failed is tried again after a pause that grows, and the agent is told why.
func TestLateSandbox(t *testing.T) {
	now := time.Unix(0, 0)
	starts := 0
	var fails error
	l := &lateSandbox{now: func() time.Time { return now }, start: func() (*opening, error) {
		starts++
		if fails != nil {
			return nil, fails
		}
		return &opening{}, nil
	}}
	fails = errors.New("the engine is down")
	for _, step := range []struct {
		wait   time.Duration
		starts int
	}{{0, 1}, {0, 1}, {999 * time.Millisecond, 1}, {time.Millisecond, 2}, {time.Second, 2}, {time.Second, 3}, {time.Hour, 4}, {lastPause, 5}} {
		now = now.Add(step.wait)
		_, err := l.CheckCommand(stages.Command{Name: "jq"})
		if err == nil || !strings.Contains(err.Error(), "the engine is down") || starts != step.starts {
			t.Fatalf("at %v: got %v and %d starts, want the reason and %d", now.Unix(), err, starts, step.starts)
		}
	}
	if _, ok := l.used(); ok {
		t.Error("it was used")
	}
	fails, now = nil, now.Add(lastPause)
	for range 2 {
		if _, err := l.get(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if starts != 6 {
		t.Errorf("got %d starts, want one more and no other", starts)
	}
}
