package gateway

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestSealer: a ticket opens only for what it is bound to, in its process and its time.
func TestSealer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := binding{"ann", "execute_pipeline\x00digest"}
		made := ticket{strings.Repeat("A", idLength), 7, time.Now().Add(stateLife)}
		s := newSealer()
		state := s.close(made, of)
		if got, ok := s.open(state, of); !ok || got.id != made.id || got.round != 7 {
			t.Fatalf("got %+v, %v", got, ok)
		}
		for name, open := range map[string]func() (ticket, bool){
			"another caller":  func() (ticket, bool) { return s.open(state, binding{"bob", of.call}) },
			"another call":    func() (ticket, bool) { return s.open(state, binding{of.caller, "x"}) },
			"the same bytes":  func() (ticket, bool) { return s.open(state, binding{of.caller + of.call[:1], of.call[1:]}) },
			"another process": func() (ticket, bool) { return newSealer().open(state, of) },
		} {
			if got, ok := open(); ok {
				t.Errorf("%s opens %+v", name, got)
			}
		}
		time.Sleep(stateLife)
		if _, ok := s.open(state, of); ok {
			t.Error("it opens too late")
		}
	})
}

// FuzzSealer: no text opens but one that was sealed.
func FuzzSealer(f *testing.F) {
	s, of := newSealer(), binding{"ann", "x"}
	good := s.close(ticket{strings.Repeat("A", idLength), 1, time.Now().Add(time.Hour)}, of)
	f.Add(good[:len(good)-1] + "=")
	f.Add(strings.Repeat("A", len(good)))
	f.Fuzz(func(t *testing.T, text string) {
		if _, ok := s.open(text, of); ok && text != good {
			t.Errorf("%q opens", text)
		}
	})
}
