package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var (
	shortForm = regexp.MustCompile(`^[A-Z].*[^.]$`)
	usageForm = regexp.MustCompile(`^([^A-Z]|HTTP|JSON|MCP).*[^.]$`)
)

// withoutJSON are commands that serve or make something, or whose output is a text of another form.
var withoutJSON = []string{"mcsh", "mcsh serve", "mcsh server", "mcsh tools", "mcsh token", "mcsh schema", "mcsh sandbox", "mcsh sandbox build"}

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
		for line := range strings.Lines(cmd.Long + "\n" + cmd.Example) {
			if len(line) > 125 {
				t.Errorf("%s: a line of %d characters: %q", path, len(line), line)
			}
		}
		served := cmd.Parent() != nil && cmd.Parent().Name() == "server"
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
