package programs_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestAwkScripts: what gawk --sandbox would refuse in the middle of its work is refused before; what only looks like it is not.
func TestAwkScripts(t *testing.T) {
	tests := readJSON[[]struct {
		Args []string
		Want string // a part of the refusal; empty: the script is fine
	}](t, "testdata/awk.json")
	for _, test := range tests {
		_, err := check("awk", test.Args)
		var e *stages.Error
		switch {
		case test.Want == "" && err != nil:
			t.Errorf("%q: got %v, want that it is accepted", test.Args, err)
		case test.Want != "" && (!errors.As(err, &e) || e.Code != stages.DisallowedArgument || !strings.Contains(e.Msg, test.Want) || e.Hint == ""):
			t.Errorf("%q: got %v, want a refusal with %q and a hint", test.Args, err, test.Want)
		}
	}
}

// ofGawk finds in a listing of gawk's debugger what its sandbox refuses.
var ofGawk = regexp.MustCompile(`redir_type = " |Op_builtin +: system`)

// TestAwkAgrees: what is refused in a script, and what is not, is what gawk itself makes of it. The scripts are those
// above, and the library that comes with gawk.
func TestAwkAgrees(t *testing.T) {
	gawk, err := exec.LookPath("gawk")
	if err != nil {
		parttest.Missing(t, "gawk is not installed")
	}
	var scripts []string
	for _, test := range readJSON[[]struct{ Args []string }](t, "testdata/awk.json") {
		if len(test.Args) == 1 {
			scripts = append(scripts, test.Args[0])
		}
	}
	library, err := filepath.Glob("/usr/share/awk/*.awk")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range library {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		scripts = append(scripts, string(text))
	}
	for _, script := range scripts {
		file := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		if exec.Command(gawk, "--pretty-print=/dev/null", "-f", file).Run() != nil {
			continue // it is a mistake anyway
		}
		list := exec.Command(gawk, "-D", "-f", file)
		list.Stdin = strings.NewReader("dump\nquit\n")
		listing, err := list.CombinedOutput()
		if err != nil || !strings.Contains(string(listing), "Op_") {
			t.Fatalf("gawk lists nothing of %q: %v\n%s", script, err, listing)
		}
		_, err = check("awk", []string{script})
		refused := err != nil && !strings.Contains(err.Error(), "no such function") && !strings.Contains(err.Error(), "@include")
		if refused != ofGawk.Match(listing) {
			t.Errorf("%q: refused %v (%v), but gawk lists\n%s", script, refused, err, listing)
		}
	}
}

// FuzzAwkScript: no script makes the reading of scripts panic or hang.
func FuzzAwkScript(f *testing.F) {
	for _, seed := range []string{`{print $1 > "f"}`, `/[[:alpha:]/]/ {getline $(x[1])`, `BEGIN{"a\"" | getline`, "a &&\n/b/;x++ / 2 # > f"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script string) { _, _ = check("awk", []string{script}) })
}
