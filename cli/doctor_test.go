package cli

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/sandbox"
)

// doctor names missing parts with the one command that brings them all; it fails only without a sandbox.
func TestChecks(t *testing.T) {
	broken := diagnosis{backends: backends}
	after := func(run func(context.Context, *diagnosis), d diagnosis) []finding {
		run(t.Context(), &d)
		return d.findings
	}
	for _, test := range []struct {
		name string
		got  []finding
		want []finding
	}{
		{
			"programs",
			after(checkPrograms, diagnosis{report: &sandbox.Report{Landlock: 5, Programs: []sandbox.Availability{
				{Name: "awk", Package: "gawk", Refusal: "this awk is another implementation (mawk 1.3.4)"},
				{Name: "jq"},
				{Name: "rev", Package: "bsdextrautils", Refusal: "rev is not installed"},
				{Name: "column", Package: "bsdextrautils", Refusal: "column is not installed"},
			}}}),
			[]finding{
				{Status: statusOK, Text: "1 of 4 can be used"},
				{Status: statusWarning, Text: "awk is not available: this awk is another implementation (mawk 1.3.4)"},
				{Status: statusWarning, Text: "rev is not available: rev is not installed"},
				{Status: statusWarning, Text: "column is not available: column is not installed", Hint: "where the commands run, on Debian: apt-get install gawk bsdextrautils"},
			},
		},
		{
			"no Landlock", // packages would not help
			after(checkPrograms, diagnosis{report: &sandbox.Report{Programs: []sandbox.Availability{
				{Name: "awk", Package: "gawk", Refusal: "it needs Landlock"},
			}}}),
			[]finding{{Status: statusOK, Text: "0 of 1 can be used"}, {Status: statusWarning, Text: "awk is not available: it needs Landlock"}},
		},
		{"no sandbox, its programs", after(checkPrograms, broken), nil},
		{
			"no sandbox", after(checkCommands, broken),
			[]finding{{Status: statusFailed, Text: "no command can run here", Hint: "fix one of the backends above, or go without commands: --sandbox off"}},
		},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
