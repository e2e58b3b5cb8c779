package programs_test

import "testing"

// TestKinds: which arguments keep the kind of the data, and which make JSON values of it. All others make text.
func TestKinds(t *testing.T) {
	const keeps, values, text = "keeps", "values", "text"
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"jq", []string{"."}, values},
		{"jq", []string{"-c", ".[]"}, values},
		{"jq", []string{"-n", "-s", "1"}, values},
		{"jq", []string{"-r", ".a"}, text},
		{"jq", []string{"-cr", ".a"}, text},
		{"jq", []string{"-j", ".a"}, text},
		{"jq", []string{"--raw-output0", ".a"}, text},
		{"sort", nil, keeps},
		{"sort", []string{"-u", "-k2,2nr", "-t", ","}, keeps},
		{"sort", []string{"-c"}, text},
		{"sort", []string{"-z"}, text},
		{"uniq", nil, keeps},
		{"uniq", []string{"-d"}, keeps},
		{"uniq", []string{"-c"}, text},
		{"uniq", []string{"--group"}, text},
		{"head", []string{"-n", "3"}, keeps},
		{"head", []string{"-3"}, keeps},
		{"head", []string{"-c", "3"}, text},
		{"head", []string{"-v"}, text},
		{"tail", []string{"-n", "+2"}, keeps},
		{"tail", []string{"-c", "2"}, text},
		{"shuf", []string{"-n", "1"}, keeps},
		{"shuf", []string{"-i", "1-3"}, text},
		{"shuf", []string{"-e", "1"}, text},
		{"tac", nil, keeps},
		{"tac", []string{"-s", ","}, text},
		{"grep", []string{"-iE", "a|b"}, keeps},
		{"grep", []string{"-v", "-e", "a"}, keeps},
		{"grep", []string{"-m", "1", "a"}, keeps},
		{"grep", []string{"-n", "a"}, text},
		{"grep", []string{"-o", "a"}, text},
		{"grep", []string{"-A", "1", "a"}, text},
		{"grep", []string{"-H", "a"}, text},
		{"grep", []string{"-c", "a"}, values},
		{"grep", []string{"-c", "-H", "a"}, text},
		{"rg", []string{"-S", "a"}, keeps},
		{"rg", []string{"-o", "a"}, text},
		{"rg", []string{"--json", "a"}, text},
		{"rg", []string{"-c", "a"}, values},
		{"wc", []string{"-l"}, values},
		{"wc", []string{"-c"}, values},
		{"wc", []string{"-l", "-l"}, values},
		{"wc", nil, text},
		{"wc", []string{"-lc"}, text},
		{"wc", []string{"-l", "-"}, text},
		{"cut", []string{"-c", "1"}, text},
		{"sed", []string{"-n", "1p"}, text},
		{"awk", []string{"{print}"}, text},
		{"rev", nil, text},
	} {
		inv, err := check(tt.name, tt.args)
		if err != nil {
			t.Fatalf("%s %q: %v", tt.name, tt.args, err)
		}
		got := text
		switch h := inv.Traits; {
		case h.KeepsKind && h.Values:
			got = "both"
		case h.KeepsKind:
			got = keeps
		case h.Values:
			got = values
		}
		if got != tt.want {
			t.Errorf("%s %q: %s, want %s", tt.name, tt.args, got, tt.want)
		}
	}
}
