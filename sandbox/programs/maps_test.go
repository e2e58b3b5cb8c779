//go:build !race

package programs_test

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox/programs"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// FuzzMaps: a command that is said to map lines makes of two lines together what it makes of each.
func FuzzMaps(f *testing.F) {
	names := []string{"tr", "sed", "cut", "numfmt", "rev"}
	for _, r := range readJSON[[]row](f, "testdata/accepted.json") {
		for i, name := range names {
			if r.Command == name && len(r.Inputs) == 0 {
				f.Add(byte(i), strings.Join(r.Args, "\x1f"), "a1,b c\t2", "x 10\x00y")
			}
		}
	}
	f.Fuzz(func(t *testing.T, which byte, args, one, other string) {
		name := names[int(which)%len(names)]
		var argv []string
		if args != "" {
			argv = strings.Split(args, "\x1f")
		}
		inv, err := check(name, argv)
		if err != nil || !inv.Traits.MapsLines {
			return
		}
		one, other = strings.ReplaceAll(one, "\n", "")+"\n", strings.ReplaceAll(other, "\n", "")+"\n"
		var outs [3]string
		var errs [3]error
		for i, in := range []string{one, other, one + other} {
			outs[i], errs[i] = mapped(t, inv, in)
		}
		if errs[2] != nil || strings.Count(outs[2], "\n") != 2 {
			return // it is done again, one by one
		}
		apart := outs[0] + outs[1]
		if errs[0] != nil || errs[1] != nil || apart != outs[2] || strings.Count(outs[0], "\n") != 1 {
			t.Errorf("%q makes %q (%v) of %q and %q (%v) of %q, and %q of both", inv.Argv, outs[0], errs[0], one, outs[1], errs[1], other, outs[2])
		}
	})
}

// awkward are lines that programs may treat in ways of their own, or that may change how they treat the next.
func awkward() (lines []string) {
	lines = []string{
		"", "1,2,3", " 1 2", "\t7K", "2.5Mi", "x", "-7", "1e3", "1\x002", "\x00", strings.Repeat("9", 30), "   1    2000", "12kg", "1\r", "\r", "\x1b[0m",
		"é", "éÀ", "\u2028a\u0085", "\ufeffa", strings.Repeat("long ", 20_000), "\\", "a\\n", "aab  bll", "/usr/bin", "&", "-", "--help", "e\u0301\u0302",
	}
	part := []string{"\xc3", "\xa9", "\xe2", "\x82", "A"}
	for _, a := range part {
		lines = append(lines, a)
		for _, b := range part {
			lines = append(lines, a+b)
		}
	}
	for i := range lines {
		lines[i] += "\n"
	}
	return lines
}

// mapping are arguments that map lines, with all that they do to them.
var mapping = [][]string{
	{"tr", "a-z", "A-Z"},
	{"tr", "-s", " l"},
	{"tr", "-ds", "a", "[:blank:]"},
	{"tr", "-s", "[:lower:]", "[:upper:]"},
	{"tr", "-t", "aeiou", "x"},
	{"tr", " -~", "x"},
	{"tr", "-d", "\xc3"},
	{"tr", "é", "ab"},
	{"cut", "-c2-"},
	{"cut", "-b1", "--complement"},
	{"cut", "-d,", "-f2"},
	{"cut", "-d", "", "-f2", "--output-delimiter="},
	{"cut", "-d\xa9", "-f1,3-"},
	{"cut", "-f2-"},
	{"rev"},
	{"numfmt"},
	{"numfmt", "--to=iec", "--invalid=ignore"},
	{"numfmt", "--field=2", "--to=si", "--invalid=warn"},
	{"numfmt", "--field=-", "--from=auto", "--invalid=ignore"},
	{"numfmt", "--padding=-10", "--suffix=kg", "--invalid=ignore"},
	{"numfmt", "--format=x%010.2f%%", "--invalid=ignore"},
	{"numfmt", "-d,", "--field=2-", "--grouping", "--debug", "--invalid=fail"},
	{"numfmt", "-d", "", "--round=up", "--to-unit=1000", "--invalid=ignore"},
	{"sed", "s/.*/\\U&/"},
	{"sed", "-E", "s/(.)(.)/\\L\\2\\u\\1\\E&/g"},
	{"sed", "s/x*/-/2"},
	{"sed", "-e", "s/^/<\\t/", "-e", "s|$|\\||"},
	{"sed", "s/\\xc3/&&/g"},
	{"sed", "--posix", "-u", "s,\\W,\\\\n,g"},
	{"sed", "s/[^a]\\n*$/[\\0]/I"},
	{"sed", "-E", "s/(^|.)\\b/\\l&/3g"},
}

// TestMapsBehind: a command that maps lines makes of each line what it makes of it alone, whichever line is before it. Where
// it does not make one line of one, or fails, that shows however many go together: none makes more than one.
func TestMapsBehind(t *testing.T) {
	for _, argv := range mapping {
		t.Run(strings.ReplaceAll(strings.Join(argv, " "), "/", "_"), func(t *testing.T) {
			t.Parallel()
			inv, err := check(argv[0], argv[1:])
			if err != nil || !inv.Traits.MapsLines {
				t.Fatalf("%q maps lines: %v, %v", argv, inv.Traits.MapsLines, err)
			}
			own := map[string]string{}
			var whole, odd []string
			for _, line := range awkward() {
				out, err := mapped(t, inv, line)
				switch n := strings.Count(out, "\n"); {
				case n > 1:
					t.Errorf("it makes %d lines of %.40q", n, line)
				case err == nil && n == 1 && strings.HasSuffix(out, "\n"):
					whole = append(whole, line)
				default:
					odd = append(odd, line)
				}
				own[line] = out
			}
			var in []string
			for _, line := range whole {
				for _, next := range whole {
					if len(line)+len(next) < 1000 || line == whole[0] || next == whole[0] {
						in = append(in, line, next)
					}
				}
			}
			out, err := mapped(t, inv, strings.Join(in, ""))
			got := slices.Collect(strings.Lines(out))
			if err != nil || len(got) != len(in) {
				t.Fatalf("it makes %d lines of %d, and says %v", len(got), len(in), err)
			}
			for i, line := range in {
				if got[i] != own[line] {
					t.Errorf("it makes %.40q of %.40q, and %.40q behind %.40q", own[line], line, got[i], in[max(i-1, 0)])
				}
			}
			for _, line := range odd {
				for _, together := range []string{line + line, line + strings.Join(whole, ""), strings.Join(whole, "") + line} {
					if out, err := mapped(t, inv, together); err == nil && strings.Count(out, "\n") == strings.Count(together, "\n") {
						t.Errorf("%.40q alone comes to %.40q, and nothing shows in %.80q", line, own[line], together)
					}
				}
			}
		})
	}
}

// mapped returns what the real tool makes of in.
func mapped(t *testing.T, inv programs.Invocation, in string) (string, error) {
	t.Helper()
	path, err := exec.LookPath(inv.Argv[0])
	if err != nil {
		parttest.Missing(t, "%v", err)
	}
	tool := exec.CommandContext(t.Context(), path, inv.Argv[1:]...)
	tool.Env, tool.Stdin = []string{"LC_CTYPE=C.UTF-8"}, strings.NewReader(in)
	out, err := tool.Output()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	return string(out), err
}
