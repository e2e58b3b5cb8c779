package sandbox

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
)

// TestTurnsInOrder: callers that wait get one place after another, whatever each asks for.
func TestTurnsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTurns(1)
		give, err := q.take(t.Context(), "busy")
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, caller := range []string{"busy", "busy", "busy", "other", "late"} {
			go func() {
				give, err := q.take(t.Context(), caller)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, caller)
				give()
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() { _, err := q.take(ctx, "gone"); gone <- err }()
		synctest.Wait()
		cancel()
		if err := <-gone; err == nil {
			t.Error("a caller that left has a place")
		}
		give()
		synctest.Wait()
		if want := []string{"busy", "other", "late", "busy", "busy"}; !slices.Equal(order, want) {
			t.Errorf("got %q, want %q", order, want)
		}
		if q.used != 0 || len(q.held) != 0 || len(q.waiting) != 0 || len(q.next) != 0 {
			t.Errorf("left over: %+v", q)
		}
	})
}

// TestTurnsLeaveSome: few callers do not take all places; this machine may.
func TestTurnsLeaveSome(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		callers []string
		want    []int // places that each gets, one caller after another
	}{
		{[]string{"a"}, []int{8}},
		{[]string{"a", "b", "c", "d", "e"}, []int{8, 4, 2, 1, 1}},
		{[]string{""}, []int{16}},
		{[]string{"a", ""}, []int{8, 8}},
	} {
		q := newTurns(16)
		var got []int
		for _, caller := range tt.callers {
			n := 0
			for {
				if _, err := q.take(ended, caller); err != nil {
					break
				}
				n++
			}
			got = append(got, n)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %v, want %v", tt.callers, got, tt.want)
		}
	}
}
