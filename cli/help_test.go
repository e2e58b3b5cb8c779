package cli

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var (
	shortForm = regexp.MustCompile(`^[A-Z].*[^.]$`)
	usageForm = regexp.MustCompile(`^([^A-Z]|HTTP|JSON|MCP).*[^.]$`)
)

// withoutJSON are commands that serve or make something, or whose output is a text of another form.
var withoutJSON = []string{"mcsh", "mcsh serve", "mcsh server", "mcsh schema", "mcsh sandbox", "mcsh sandbox build", "mcsh man", "mcsh console", "mcsh flags"}

// The help of all commands and flags has one form, and what prints data has --json.
func TestHelp(t *testing.T) {
	root := (&program{}).root()
	for _, cmd := range everyCommand(root) {
		path := cmd.CommandPath()
		if !shortForm.MatchString(cmd.Short) || len(cmd.Short) > 110 {
			t.Errorf("%s: %q", path, cmd.Short)
		}
		if cmd.Long != "" && !strings.HasSuffix(strings.TrimSpace(cmd.Long), ".") {
			t.Errorf("%s: its long text does not end with a period: %q", path, cmd.Long)
		}
		for line := range strings.Lines(helpText(cmd)) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > helpWidth {
				t.Errorf("%s: a line of %d characters: %q", path, n, line)
			}
		}
		served := cmd.Parent() != nil && cmd.Parent().Name() == "server"
		if path == "mcsh help" || path == "mcsh completion" || cmd.HasParent() && cmd.Parent().Name() == "completion" {
			continue // it is cobra's
		}
		if has := cmd.Flags().Lookup("json") != nil; has == (slices.Contains(withoutJSON, path) || served) {
			t.Errorf("%s: it has --json: %v", path, has)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !usageForm.MatchString(f.Usage) {
				t.Errorf("%s --%s: %q", path, f.Name, f.Usage)
			}
		})
	}
}

// everyCommand is a command with those below it.
func everyCommand(cmd *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{cmd}
	for _, below := range cmd.Commands() {
		list = append(list, everyCommand(below)...)
	}
	return list
}

// Help has the flags that are nearly always needed first, and the others by what they are about; every flag once.
func TestHelpGroups(t *testing.T) {
	root := (&program{}).root()
	for path, want := range map[string][]string{
		"run":     {"Flags", "Servers and files", "Sandbox", "Sign-in", "ToolHive", "Limits"},
		"serve":   {"Flags", "HTTP", "Questions of servers", "Callers", "Servers and files", "Sandbox", "Sign-in", "ToolHive", "Limits", "Logs and metrics"},
		"version": {"Flags"},
	} {
		cmd, _, err := root.Find([]string{path})
		if err != nil {
			t.Fatal(err)
		}
		var titles []string
		flags := 0
		for _, s := range flagSections(cmd) {
			titles = append(titles, s.title)
			s.set.VisitAll(func(*pflag.Flag) { flags++ })
		}
		if !slices.Equal(titles, want) {
			t.Errorf("%s: got %q, want %q", path, titles, want)
		}
		all := 0
		cmd.LocalFlags().VisitAll(func(*pflag.Flag) { all++ })
		if flags != all {
			t.Errorf("%s: %d flags in the groups, %d in all", path, flags, all)
		}
	}
	for _, g := range flagGroups {
		for _, pattern := range g.flags {
			if !slices.ContainsFunc(everyCommand(root), func(cmd *cobra.Command) bool {
				found := false
				cmd.Flags().VisitAll(func(f *pflag.Flag) { found = found || flagGroup{flags: []string{pattern}}.has(f.Name) })
				return found
			}) {
				t.Errorf("group %s has %q, which no command has", g.title, pattern)
			}
		}
	}
}

// A manual page has all that the help of its command has, and nothing in it is taken for a request.
func TestManual(t *testing.T) {
	root := (&program{}).root()
	pages := manual(root)
	request := regexp.MustCompile(`^\.(TH|SH|SS|TP|PP|nf|fi)\b`)
	for _, cmd := range everyCommand(root) {
		if !cmd.IsAvailableCommand() && cmd != root {
			continue
		}
		page := pages[manName(cmd)+".1"]
		if page == "" {
			t.Errorf("%s has no page", cmd.CommandPath())
		}
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !request.MatchString(line) {
				t.Errorf("%s: %q is a request", cmd.CommandPath(), line)
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(page, roff("--"+f.Name)) || !strings.Contains(page, roff(f.Usage[:min(len(f.Usage), 20)])) {
				t.Errorf("%s: its page lacks --%s", cmd.CommandPath(), f.Name)
			}
		})
	}
	if got, want := roff(".x -- \\n\n'y"), "\\&.x \\-\\- \\en\n\\&'y"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
