package cli

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
)

// A failed backend is tried again after a growing pause, and agents get the reason.
func TestLazySandbox(t *testing.T) {
	synctest.Test(t, testLazySandbox)
}

func testLazySandbox(t *testing.T) {
	begun := time.Now()
	starts := 0
	var fails error
	l := &lazySandbox{start: func() (*activeBackend, error) {
		starts++
		if fails != nil {
			return nil, fails
		}
		return &activeBackend{}, nil
	}}
	fails = errors.New("the engine is down")
	for _, step := range []struct {
		wait   time.Duration
		starts int
	}{{0, 1}, {0, 1}, {999 * time.Millisecond, 1}, {time.Millisecond, 2}, {time.Second, 2}, {time.Second, 3}, {time.Hour, 4}, {lastPause, 5}} {
		time.Sleep(step.wait)
		_, err := l.Plan("", "", "").Check(t.Context(), stages.Command{Name: "jq"})
		if err == nil || !strings.Contains(err.Error(), "the engine is down") || starts != step.starts {
			t.Fatalf("at %v: got %v and %d starts, want the reason and %d", time.Since(begun), err, starts, step.starts)
		}
	}
	if active, _ := l.state(); active != nil {
		t.Error("a backend is active")
	}
	time.Sleep(lastPause)
	fails = nil
	for range 2 {
		if _, err := l.get(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if starts != 6 {
		t.Errorf("got %d starts, want one more and no other", starts)
	}
}
