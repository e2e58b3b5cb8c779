package programs_test

import (
	"testing"
)

// TestReplayable: what depends on the time or on chance is known.
func TestReplayable(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want bool
	}{
		{"jq", []string{"-c", ".[]"}, true},
		{"jq", []string{"{at: now}"}, false},
		{"jq", []string{"def f: now; f"}, false},
		{"jq", []string{".now"}, true},
		{"sort", []string{"-n"}, true},
		{"sort", []string{"-R"}, false},
		{"sort", []string{"--sort=random"}, false},
		{"sort", []string{"-k2,2R"}, false},
		{"shuf", nil, false},
		{"date", []string{"+%F"}, false},
		{"awk", []string{"{print rand()}"}, false},
		{"sed", []string{"s/a/b/"}, true},
		{"head", []string{"-n", "3"}, true},
	} {
		inv, err := check(tt.name, tt.args)
		if err != nil {
			t.Fatal(err)
		}
		if got := inv.Traits.Replayable; got != tt.want {
			t.Errorf("%s %q: %v, want %v", tt.name, tt.args, got, tt.want)
		}
	}
}
