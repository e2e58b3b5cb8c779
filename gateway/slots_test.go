package gateway

import (
	"strings"
	"testing"
)

// TestSlots: a caller has few slots of its own, whoever is nobody shares those of the process, and all come back.
func TestSlots(t *testing.T) {
	s := newSlots("pipelines", 5, 2)
	var releases []func()
	take := func(caller, want string) {
		t.Helper()
		release, err := s.take(caller)
		switch {
		case err == nil && want == "":
			releases = append(releases, release)
		case err == nil || want == "" || !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v, want %q", caller, err, want)
		}
	}
	for range 3 {
		take("session a", "")
		take("session a", "")
		take("session a", "2 pipelines of yours are running already (limit caller-runs)")
		take(callerAnonymous, "")
		take(callerAnonymous, "")
		take(callerAnonymous, "")
		take(callerAnonymous, "5 pipelines are running already (limit runs)")
		take("session b", "(limit runs)")
		for _, release := range releases {
			release()
		}
		releases = nil
	}
	if s.taken != 0 || len(s.by) != 0 {
		t.Errorf("%d slots and %d callers are left", s.taken, len(s.by))
	}
}
