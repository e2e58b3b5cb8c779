package programs_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/stages"
)

// addition is one that is accepted.
func addition(change func(a *programs.Addition)) programs.Addition {
	a := programs.Addition{
		Name: "tool", Path: "/usr/local/bin/tool", Summary: "does things", Operands: "none",
		Options: []programs.AdditionOption{
			{Long: "count", Short: "n", Takes: "number"},
			{Long: "label", Takes: "text"},
			{Short: "q"},
			{Long: "all", Short: "a", Takes: "nothing"},
			{Short: "s", Takes: "text"},
		},
	}
	if change != nil {
		change(&a)
	}
	return a
}

func manyOptions(n int) (all []programs.AdditionOption) {
	for i := range n {
		all = append(all, programs.AdditionOption{Long: fmt.Sprint("option", i)})
	}
	return all
}

func TestAddRefuses(t *testing.T) {
	for _, test := range []struct {
		change func(a *programs.Addition)
		want   string // a part of the error
	}{
		{func(a *programs.Addition) { a.Name = "" }, "want a name"},
		{func(a *programs.Addition) { a.Name = "my tool" }, `"my tool": want a name`},
		{func(a *programs.Addition) { a.Name = "Tool" }, "lower-case letters"},
		{func(a *programs.Addition) { a.Name = "../tool" }, "want a name"},
		{func(a *programs.Addition) { a.Name = "tool\n" }, "want a name"},
		{func(a *programs.Addition) { a.Name = strings.Repeat("t", 33) }, "want a name"},
		{func(a *programs.Addition) { a.Name = "jq" }, "there is a command of this name already"},
		{func(a *programs.Addition) { a.Name = "fd" }, "there is a command of this name already"},
		{func(a *programs.Addition) { a.Name = programs.HTML }, "there is a command of this name already"},
		{func(a *programs.Addition) { a.Name = "tee" }, "there is a command of this name already"},
		{func(a *programs.Addition) { a.Path = "" }, "path: want an absolute path"},
		{func(a *programs.Addition) { a.Path = "tool" }, "path: want an absolute path"},
		{func(a *programs.Addition) { a.Path = "/" }, "path: want an absolute path"},
		{func(a *programs.Addition) { a.Path = "/usr/bin/../tool" }, "path: want an absolute path"},
		{func(a *programs.Addition) { a.Path = "/usr/./tool" }, "path: want an absolute path"},
		{func(a *programs.Addition) { a.Path = "/usr//tool" }, "path: want an absolute path"},
		{func(a *programs.Addition) { a.Path = "/usr/tool/" }, "path: want an absolute path"},
		{func(a *programs.Addition) { a.Path = "/usr/my tool" }, "path: want an absolute path"},
		{func(a *programs.Addition) { a.Path = "/usr/tool\x00" }, "path: want an absolute path"},
		{func(a *programs.Addition) { a.Path = "/" + strings.Repeat("t", 256) }, "path: want an absolute path of at most 256"},
		{func(a *programs.Addition) { a.Summary = "a\nb" }, "summary: want one line"},
		{func(a *programs.Addition) { a.Summary = strings.Repeat("a", 201) }, "summary: want one line of at most 200 bytes"},
		{func(a *programs.Addition) { a.Operands = "file" }, `operands: want none, text or files, got "file"`},
		{func(a *programs.Addition) { a.Options = manyOptions(65) }, "options: there are 65, at most 64 are allowed"},
		{
			func(a *programs.Addition) { a.Options[1] = programs.AdditionOption{Takes: "text"} },
			`options[1]: want "long", "short" or both`,
		},
		{func(a *programs.Addition) { a.Options[1].Long = "--label" }, "options[1]: long: want"},
		{func(a *programs.Addition) { a.Options[1].Long = "a=b" }, "options[1]: long: want"},
		{func(a *programs.Addition) { a.Options[1].Long = "count" }, "--count is there already"},
		{func(a *programs.Addition) { a.Options[1].Long = "help" }, "--help is there already"},
		{func(a *programs.Addition) { a.Options[2].Short = "-q" }, "options[2]: short: want one letter"},
		{func(a *programs.Addition) { a.Options[2].Short = "é" }, "options[2]: short: want one letter"},
		{func(a *programs.Addition) { a.Options[2].Short = "n" }, "-n is there already"},
		{func(a *programs.Addition) { a.Options[1].Takes = "file" }, `takes: want nothing, number or text, got "file"`},
	} {
		a := addition(test.change)
		if _, err := programs.Add([]programs.Addition{a}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: got %v, want %q", a, err, test.want)
		}
	}
	_, err := programs.Add(slices.Repeat([]programs.Addition{addition(nil)}, 2))
	if err == nil || !strings.Contains(err.Error(), `"tool": the command is added twice`) {
		t.Errorf("twice: got %v", err)
	}
	if _, err := programs.Add(make([]programs.Addition, 33)); err == nil || !strings.Contains(err.Error(), "at most 32") {
		t.Errorf("33: got %v", err)
	}
}

func TestAddedArguments(t *testing.T) {
	for _, test := range []struct {
		operands string
		args     []string
		files    bool
		want     []string // Argv, or
		refused  string   // a part of the error and its hint
	}{
		{"none", nil, false, []string{"tool"}, ""},
		{
			"none",
			[]string{"-qan", "3", "--label", "a b", "-sx"},
			false,
			[]string{"tool", "-q", "--all", "--count=3", "--label=a b", "-sx"},
			"",
		},
		{"none", []string{"--count=-0.5", "-s", "--count"}, false, []string{"tool", "--count=-0.5", "-s--count"}, ""},
		{"none", []string{"--version"}, false, []string{"tool", "--version"}, ""},
		{"none", []string{"-n", "many"}, false, nil, "give a number such as 10 or 0.5"},
		{"none", []string{"-n"}, false, nil, "needs a value"},
		{"none", []string{"--all=1"}, false, nil, "--all takes no value"},
		{"none", []string{"--coun", "1"}, false, nil, "did you mean --count?"},
		{"none", []string{"-x"}, false, nil, "offered: -n --label -q -a -s --version"},
		{"none", []string{"--help"}, false, nil, "--help is not available"},
		{"none", []string{"a"}, true, nil, `takes options alone, not "a"`},
		{"none", []string{"|"}, true, nil, "no shell reads"},
		{"text", []string{"a", "-q", "--", "-x"}, false, []string{"tool", "-q", "--", "a", "-x"}, ""},
		{"files", []string{"-"}, false, []string{"tool"}, ""},
		{"files", []string{"a"}, false, nil, "there are no files"},
		{"files", []string{"a/b"}, true, []string{"tool", "--", "a/b"}, ""},
		{"files", []string{"/etc/passwd"}, true, nil, "relative"},
		{"files", []string{"../a"}, true, nil, "lead out of the workspace"},
		{"files", []string{".mcsh/a"}, true, nil, "belongs to the gateway"},
	} {
		added, err := programs.Add([]programs.Addition{addition(func(a *programs.Addition) { a.Operands = test.operands })})
		if err != nil {
			t.Fatal(err)
		}
		there := programs.Given{Files: test.files, Added: added}
		inv, err := programs.Parse("tool", test.args, there)
		if test.refused != "" {
			e, ok := errors.AsType[*stages.Error](err)
			if !ok || !strings.Contains(e.Msg+" | "+e.Hint, test.refused) {
				t.Errorf("%s %q: got %v, want %q", test.operands, test.args, err, test.refused)
			}
			continue
		}
		if err != nil || !slices.Equal(inv.Argv, test.want) {
			t.Errorf("%s %q: got %q, %v, want %q", test.operands, test.args, inv.Argv, err, test.want)
			continue
		}
		if inv.Argv[len(inv.Argv)-1] != "--version" && inv.Traits != (stages.Traits{}) {
			t.Errorf("%s %q: the traits are %+v, want none", test.operands, test.args, inv.Traits)
		}
		if again, err := programs.Parse("tool", inv.Argv[1:], there); err != nil || !slices.Equal(again.Argv, inv.Argv) {
			t.Errorf("%q: again: got %q, %v", inv.Argv, again.Argv, err)
		}
	}
}

// TestAddedText: a worker has the program under its name, with what its jail depends on.
func TestAddedText(t *testing.T) {
	all := []programs.Addition{
		addition(func(a *programs.Addition) { a.Operands, a.Threads = "files", true }),
		addition(func(a *programs.Addition) { a.Name = "other" }),
	}
	added, err := programs.Add(all)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"Name":"tool","Path":"/usr/local/bin/tool","Operands":"files","Threads":true},` +
		`{"Name":"other","Path":"/usr/local/bin/tool"}]`
	if got := added.Text(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	again, err := programs.ReadAdded(want)
	if err != nil || again.Text() != want {
		t.Errorf("again: got %s, %v", again.Text(), err)
	}
	if none, err := programs.ReadAdded(programs.Added(nil).Text()); err != nil || none != nil {
		t.Errorf("none: got %v, %v", none, err)
	}
	if _, err := programs.ReadAdded(`[{"Name":"jq","Path":"/bin/sh"}]`); err == nil {
		t.Error("a worker accepts a program under the name of another")
	}
}

func TestAddedPage(t *testing.T) {
	added, err := programs.Add([]programs.Addition{addition(nil)})
	if err != nil {
		t.Fatal(err)
	}
	page, err := added.PageOf("tool")
	if err != nil {
		t.Fatal(err)
	}
	const want = `tool: does things

Added by the operator. Options: -n, --count VALUE; --label VALUE; -q; -a, --all; -s VALUE

A stage:
  {"type":"command","command":"tool"}

Options:
  -n, --count VALUE: give a number such as 10 or 0.5
  --label VALUE
  -q
  -a, --all
  -s VALUE
  --version

Refused:
  --help: usage texts describe options that are not offered here; list_available_shell_commands
    describes the command
`
	if diff := cmp.Diff(want, page.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{
		"tol": "did you mean tool?", "/usr/local/bin/tool": `write "tool"`, "Tool": `write "tool"`,
		"tool -n 5": `write "tool", and its arguments in "args"`,
		"":          "commands: ",
	} {
		_, err := programs.Parse(name, nil, programs.Given{Added: added})
		if e, ok := errors.AsType[*stages.Error](err); !ok || e.Code != stages.DisallowedCommand || !strings.Contains(e.Hint, want) {
			t.Errorf("%q: got %v, want %q", name, err, want)
		}
	}
}

// FuzzAdded: a program gets the options that its operator has listed and no others, whatever the arguments are.
func FuzzAdded(f *testing.F) {
	for _, args := range []string{
		"", "-qan\x1f3\x1f--label\x1fa b", "--count=-0.5\x1f-s\x1f--count", "a\x1f-q\x1f--\x1f-x", "-s=\x1f-s\x1f",
		"--version", "-qx", "--label=--\x1f--",
	} {
		f.Add(args)
	}
	added, err := programs.Add([]programs.Addition{addition(func(a *programs.Addition) { a.Operands = "text" })})
	if err != nil {
		f.Fatal(err)
	}
	listed := regexp.MustCompile(`\A(?:--count=-?[0-9.]+|(?s:--label=.*)|-q|--all|(?s:-s.*)|--version)\z`)
	f.Fuzz(func(t *testing.T, joined string) {
		inv, err := programs.Parse("tool", strings.Split(joined, "\x1f"), programs.Given{Added: added})
		if err != nil {
			return
		}
		value := false // the last option has its value apart, as it is empty
		for _, arg := range inv.Argv[1:] {
			switch {
			case value && arg == "":
			case arg == "--":
				return
			case !listed.MatchString(arg):
				t.Fatalf("%q: the program gets %q", joined, inv.Argv)
			}
			value = arg == "-s"
		}
	})
}
