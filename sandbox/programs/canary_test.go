//go:build !race

package programs_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

// A trap is a directory with a file that must not be read, a program that must not be run, and no room for files.
type trap struct {
	dir, secret, program string
	before               []string
}

const canary = "CANARY-7f3a"

func newTrap(t *testing.T) trap {
	dir := t.TempDir()
	tr := trap{dir: dir, secret: filepath.Join(dir, "secret"), program: filepath.Join(dir, "program")}
	for path, text := range map[string]string{
		tr.secret:                strings.Repeat(canary+" x 1\n", 3),
		filepath.Join(dir, "@x"): "an input\nx y\n",
		tr.program:               "#!/bin/sh\necho " + canary + "; cat > " + dir + "/ran\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tr.before = tr.files(t)
	return tr
}

func (tr trap) files(t *testing.T) (names []string) {
	entries, err := os.ReadDir(tr.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// bait are words that read, write or run something if any program permits it.
func (tr trap) bait() []string {
	out := filepath.Join(tr.dir, "out")
	words := []string{
		"-", "--", "1", "x", ",", "-5", "+5", "1,2", "a-z", "@x", "{print}", "p", "1d", "+%s", "-n", "-e", "-r", "-E", "-s", "-z", "-i", "-c1", "-k1", "-t,",
		"secret", "./secret", tr.secret, out, tr.program, "x=" + tr.secret, "--out", "--fi", "--pro=" + tr.program,
		"w " + out, "r " + tr.secret, "R " + tr.secret, "W " + out, "1e " + tr.program, "s/x/y/w " + out, "s/.*/cat secret/e",
		`BEGIN{while((getline l<"` + tr.secret + `")>0)print l}`, `BEGIN{print "x">"` + out + `"}`, `BEGIN{system("` + tr.program + `")}`,
		`BEGIN{"` + tr.program + `"|getline x;print x}`, `BEGIN{print "x"|"` + tr.program + `"}`, `BEGIN{ARGV[1]="` + tr.secret + `";ARGC=2}1`,
		`BEGIN{f="system";@f("` + tr.program + `")}`, "@include \"" + tr.secret + "\"\n1", "@load\"filefuncs\"", "@ include \"secret\"",
		"TZ=\"" + tr.secret + "\" now", "f" + tr.secret, "pretty-print=" + out,
	}
	for _, o := range []string{
		"-o", "-f", "-T", "-O", "-d", "-p", "-l", "-r", "-s", "--output=", "--file=", "--files0-from=", "--compress-program=", "--pre=",
		"--reference=", "--random-source=", "--in-place=", "--profile=", "--dump-variables=", "--include=", "--exec=", "--load=", "--hostname-bin=",
	} {
		words = append(words, o+tr.secret, o+out, o+tr.program)
	}
	return words
}

// options are every option that stands anywhere in the tables, by program; "" has all of them.
func options(t *testing.T) map[string][]string {
	opts := map[string][]string{}
	for _, file := range []string{"testdata/accepted.json", "testdata/refused.json", "testdata/attacks.json"} {
		for _, r := range readJSON[[]row](t, file) {
			for _, a := range append(r.Args, r.Argv...) {
				if strings.HasPrefix(a, "-") && len(a) < 40 {
					opts[r.Command] = append(opts[r.Command], a)
					opts[""] = append(opts[""], a)
				}
			}
		}
	}
	return opts
}

// TestCanary: whatever argv is accepted, the tool that runs with it, without any sandbox, neither prints a file that
// lies beside it, nor writes one, nor runs the program there. The random argvs are the same in every run.
func TestCanary(t *testing.T) {
	const rounds = 10_000
	runs := parttest.Times(30, 150)
	all := options(t)
	for _, p := range programs.All() {
		if p.Bin == "" || p.FilesOnly {
			continue // or it is meant to see files
		}
		if _, err := exec.LookPath(p.Bin); err != nil {
			t.Logf("%s is not installed", p.Bin)
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			tr := newTrap(t)
			bait := tr.bait()
			rnd := rand.New(rand.NewPCG(7, uint64(len(p.Name))))
			ran := 0
			own := append(all[p.Name], "--version")
			option := func() string {
				if rnd.IntN(3) == 0 {
					return all[""][rnd.IntN(len(all[""]))]
				}
				return own[rnd.IntN(len(own))]
			}
			for range rounds {
				if ran == runs {
					break
				}
				var args []string
				for range 1 + rnd.IntN(3) {
					word := bait[rnd.IntN(len(bait))]
					switch rnd.IntN(3) {
					case 0:
						word = option()
					case 1:
						word = option() + word
					}
					args = append(args, word)
				}
				inputs := []string{"x"} // as bait has it
				inv, err := check(p.Name, args, inputs...)
				if err != nil {
					inputs = nil
					inv, err = check(p.Name, args)
				}
				if err != nil {
					continue
				}
				reparse(t, p.Name, inv.Argv, inputs)
				tr.spring(t, args, inv.Argv)
				ran++
			}
			if ran < runs/3 {
				t.Errorf("only %d argvs were accepted: the test shows little", ran)
			}
		})
	}
}

// spring runs argv in the trap.
func (tr trap) spring(t *testing.T, args, argv []string) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = tr.dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_CTYPE=C.UTF-8", "TZ=UTC", "TMPDIR=" + os.TempDir()}
	cmd.Stdin = strings.NewReader("x y\n1 2\nsecret\n")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // it may well fail: what counts is what it did
	if strings.Contains(out.String(), canary) {
		t.Errorf("%q -> %q printed the file: %.200q", args, argv, out.String())
	}
	if after := tr.files(t); !slices.Equal(after, tr.before) {
		t.Errorf("%q -> %q left %q", args, argv, after)
		for _, name := range after {
			if !slices.Contains(tr.before, name) {
				_ = os.Remove(filepath.Join(tr.dir, name))
			}
		}
	}
}
