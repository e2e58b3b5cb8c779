package programs_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestAwkScripts: what gawk --sandbox would refuse in the middle of its work is refused before; what only looks like it is not.
func TestAwkScripts(t *testing.T) {
	text, err := os.ReadFile("testdata/awk.json")
	if err != nil {
		t.Fatal(err)
	}
	var tests []struct {
		Args []string
		Want string // a part of the refusal; empty: the script is fine
	}
	if err := json.Unmarshal(text, &tests); err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		_, err := programs.Parse("awk", test.Args)
		var e *stages.Error
		switch {
		case test.Want == "" && err != nil:
			t.Errorf("%q: got %v, want that it is accepted", test.Args, err)
		case test.Want != "" && (!errors.As(err, &e) || e.Code != stages.DisallowedArgument || !strings.Contains(e.Msg, test.Want) || e.Hint == ""):
			t.Errorf("%q: got %v, want a refusal with %q and a hint", test.Args, err, test.Want)
		}
	}
}

// FuzzAwkScript: no script makes the reading of scripts panic or hang.
func FuzzAwkScript(f *testing.F) {
	for _, seed := range []string{`{print $1 > "f"}`, `/[[:alpha:]/]/ {getline $(x[1])`, `BEGIN{"a\"" | getline`, "a &&\n/b/;x++ / 2 # > f"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script string) { _, _ = programs.Parse("awk", []string{script}) })
}
