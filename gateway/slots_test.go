package gateway

import (
	"strings"
	"testing"
)

// TestSlots: a named caller has few slots, an address more, and the rest is for addresses that have none. This
// machine has all. Opening sessions gives no more.
func TestSlots(t *testing.T) {
	named := origin{key: "user alice", named: true}
	one, two, three := origin{key: "address 192.0.2.1"}, origin{key: "address 192.0.2.2"}, origin{key: "address 192.0.2.3"}
	here := origin{key: "address local", local: true}
	for name, steps := range map[string][]struct {
		from origin
		want string // a part of the error
	}{
		"named":   {{named, ""}, {named, ""}, {named, "you already have 2 pipelines running (limit caller-runs)"}, {one, ""}},
		"address": {{one, ""}, {one, ""}, {one, ""}, {one, "your address already has 3 pipelines running (limit address-runs)"}, {two, ""}, {three, ""}},
		"kept": {
			{one, ""},
			{one, ""},
			{two, ""},
			{one, "3 pipelines are running already, 2 of them from your address; the rest is for other addresses (limit address-runs)"},
			{two, "(limit address-runs)"},
			{three, ""},
			{here, ""},
			{here, "5 pipelines are running already (limit runs)"},
			{named, "(limit runs)"},
		},
		"local": {{here, ""}, {here, ""}, {here, ""}, {here, ""}, {here, ""}, {here, "(limit runs)"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSlots("pipelines", 5, 2, 3)
			for range 2 { // all come back
				var releases []func()
				for i, step := range steps {
					release, err := s.take(step.from)
					switch {
					case err == nil && step.want == "":
						releases = append(releases, release)
					case err == nil || step.want == "" || !strings.Contains(err.Error(), step.want):
						t.Errorf("step %d, %s: %v, want %q", i, step.from.key, err, step.want)
					}
				}
				for _, release := range releases {
					release()
				}
			}
			if s.taken != 0 || len(s.by) != 0 {
				t.Errorf("%d slots and %d origins are left", s.taken, len(s.by))
			}
		})
	}
}
