package sandboxtest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/stages"
)

// factorPath is a small program that most machines have. It reads numbers.
const factorPath = "/usr/bin/factor"

// RunAdded runs the contract of programs that an operator adds. probe is the path of the program that tries system calls,
// where commands run. open returns a driver of a workspace and of added programs.
func RunAdded(t *testing.T, probe string, open func(dir, added string) sandbox.Driver) {
	if _, err := os.Stat(factorPath); err != nil {
		parttest.Missing(t, "needs %s: %v", factorPath, err)
	}
	dir, secret := makeWorkspace(t)
	added, err := programs.Add([]programs.Addition{
		{Name: "factor", Path: factorPath, Summary: "prime factors", Operands: "text", Options: []programs.AdditionOption{{Long: "exponents", Short: "h"}}},
		{Name: "probe-text", Path: probe, Summary: "tries everything", Operands: "text", Threads: true},
		{Name: "probe-file", Path: probe, Summary: "tries everything", Operands: "files", Threads: true},
		{Name: "gone", Path: "/usr/bin/no-such-tool", Summary: "is not there"},
		{Name: "folder", Path: "/usr/lib", Summary: "is a directory"},
		{Name: "text", Path: "/etc/ld.so.cache", Summary: "cannot be executed"},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := newPool(t, func() sandbox.Driver { return open(dir, added.Text()) }, sandbox.Options{Warm: -1, Added: added})
	t.Run("runs", func(t *testing.T) { testAddedRuns(t, p) })
	t.Run("jail", func(t *testing.T) { testAddedJail(t, p, secret) })
	t.Run("plan", func(t *testing.T) { testAddedPlan(t, p) })
	t.Run("many", func(t *testing.T) { testManyAdded(t, open) })
}

// testManyAdded: as many programs as can be added, with the longest paths, are not too much for what starts workers.
func testManyAdded(t *testing.T, open func(dir, added string) sandbox.Driver) {
	var all []programs.Addition
	for i := range 32 {
		name := fmt.Sprintf("tool%028d", i)
		all = append(all, programs.Addition{Name: name, Path: "/" + strings.Repeat("+", 255), Summary: "is not there", Threads: true, Operands: "files"})
	}
	added, err := programs.Add(all)
	if err != nil {
		t.Fatal(err)
	}
	p := newPool(t, func() sandbox.Driver { return open("", added.Text()) }, sandbox.Options{Warm: -1, Added: added})
	if _, err := check(t, p, command(all[31].Name)); !strings.Contains(asError(t, err).Msg, "there is no executable file") {
		t.Errorf("got %v", err)
	}
	if out, err := run(t.Context(), prepare(t, openSession(t, p), nil, command("wc", "-c")), "four"); err != nil || out != "4\n" {
		t.Errorf("another command: got %q, %v", out, err)
	}
}

func testAddedRuns(t *testing.T, p *sandbox.Pool) {
	s := openSession(t, p)
	for _, test := range []struct {
		chain   []stages.Command
		in, out string
	}{
		{[]stages.Command{command("factor")}, "12\n15\n", "12: 2 2 3\n15: 3 5\n"},
		{[]stages.Command{command("factor", "12")}, "", "12: 2 2 3\n"},
		{[]stages.Command{command("factor", "--", "12", "15")}, "", "12: 2 2 3\n15: 3 5\n"},
		{[]stages.Command{command("grep", "1"), command("factor"), command("tail", "-n", "1")}, "12\n7\n15\n", "15: 3 5\n"},
	} {
		out, err := run(t.Context(), prepare(t, s, nil, test.chain...), test.in)
		if err != nil || out != test.out {
			t.Errorf("%v: got %q, %v, want %q", test.chain, out, err, test.out)
		}
	}
	if _, err := run(t.Context(), prepare(t, s, nil, command("factor")), "x\n"); asError(t, err).Code != stages.CommandFailed {
		t.Errorf("a number that is none: got %v", err)
	}
}

// testAddedJail: what an operator adds is as confined as any other program. One that reads files can read those and no others.
func testAddedJail(t *testing.T, p *sandbox.Pool, secret string) {
	s := openSession(t, p)
	asks := strings.NewReplacer("stat by path\n", "", "faccessat\n", "") // it sees whether a file is there
	for _, test := range []struct {
		command stages.Command
		want    string
	}{
		{command("probe-text", secret), "read standard input\ndone\n"},
		{command("probe-file", "a.txt"), "read standard input\nopen a.txt\ndone\n"},
	} {
		out, err := run(t.Context(), prepare(t, s, nil, test.command), "input")
		if test.command.Name == "probe-file" {
			out = asks.Replace(out)
		}
		if err != nil || out != test.want {
			t.Errorf("%v: got %q, %v, want %q", test.command, out, err, test.want)
		}
	}
}

// testAddedPlan: mistakes show before anything runs.
func testAddedPlan(t *testing.T, p *sandbox.Pool) {
	for _, test := range []struct {
		command stages.Command
		want    string // a part of the error and its hint; empty: it is accepted
	}{
		{command("factor", "--exponents"), ""},
		{command("factor", "--version"), ""},
		{command("factor", "--exponent"), "did you mean --exponents?"},
		{command("factor", "-x"), "-x is not an option that is offered here | offered: -h --version"},
		{command("gone"), "gone is not available here: there is no executable file /usr/bin/no-such-tool where commands run"},
		{command("folder"), "there is no executable file /usr/lib where commands run"},
		{command("text"), "there is no executable file /etc/ld.so.cache where commands run"},
		{command("factr"), "did you mean factor?"},
		{command("probe-file", "../secret"), "lead out of the workspace"},
	} {
		traits, err := check(t, p, test.command)
		switch {
		case test.want == "":
			if err != nil || traits.MapsLines || traits.KeepsKind || traits.StopsEarly {
				t.Errorf("%v: got %+v, %v", test.command, traits, err)
			}
		default:
			if e := asError(t, err); !strings.Contains(e.Msg+" | "+e.Hint, test.want) {
				t.Errorf("%v: got %q, %q, want %q", test.command, e.Msg, e.Hint, test.want)
			}
		}
	}
}
