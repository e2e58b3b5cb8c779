package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

// commandJSON is a command as --json prints it.
type commandJSON struct {
	Name      string `json:"name"`
	Summary   string `json:"summary"`
	Notes     string `json:"notes,omitempty"`
	Available bool   `json:"available"`
	Reason    string `json:"reason,omitempty"` // why it is not available
	Package   string `json:"package,omitempty"`
	Version   string `json:"version,omitempty"`
}

// sandboxJSON is a sandbox as --json prints it.
type sandboxJSON struct {
	Backend  string        `json:"backend"`
	Profile  string        `json:"profile"`
	Landlock int           `json:"landlock"`
	Seccomp  bool          `json:"seccomp"`
	Gaps     []string      `json:"gaps,omitempty"` // what this kernel leaves to fewer layers
	Notes    []string      `json:"notes,omitempty"`
	Commands []commandJSON `json:"commands"`
}

func (p *program) commandsCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "commands",
		Short: "List the commands of pipelines, and where they run",
		Args:  cobra.NoArgs,
		RunE:  work(func(ctx context.Context, _ []string) error { return p.listCommands(ctx, s) }),
	}
	p.addSandbox(cmd, &s.sandbox)
	p.addJSON(cmd, "print one JSON object")
	return cmd
}

func (p *program) listCommands(ctx context.Context, s settings) (err error) {
	open, err := findBackend(s.sandbox.backend, backends)
	if err != nil {
		return err
	}
	opened, err := open(ctx, p, s.sandbox, oneRun)
	if err != nil {
		return configError("mcsh doctor shows what is missing; tool and preview stages work without commands",
			fmt.Errorf("no command can run here: %w", err))
	}
	defer func() { err = errors.Join(err, opened.pool.Close()) }()
	list := describeSandbox(opened.report())
	if p.json {
		return writeJSON(p.stdout, list)
	}
	_, err = fmt.Fprint(p.stdout, list.text())
	return err
}

func describeSandbox(r sandbox.Report) sandboxJSON {
	list := sandboxJSON{
		Backend: r.Backend, Profile: r.Profile, Landlock: r.Landlock, Seccomp: r.Seccomp, Gaps: r.Gaps, Notes: r.Notes,
		Commands: []commandJSON{},
	}
	for _, a := range r.Programs {
		c := commandJSON{Name: a.Name, Available: a.Refusal == "", Reason: a.Refusal, Package: a.Package, Version: a.Version}
		if row, ok := programs.Find(a.Name); ok {
			c.Summary, c.Notes = row.Summary, row.Notes
		}
		list.Commands = append(list.Commands, c)
	}
	return list
}

func (s sandboxJSON) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "backend %s, profile %s, Landlock ABI %d, seccomp %s\n", s.Backend, s.Profile, s.Landlock, yesNo(s.Seccomp))
	for _, gap := range s.Gaps {
		fmt.Fprintf(&b, "gap: %s\n", gap)
	}
	for _, note := range s.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	b.WriteString("\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, c := range s.Commands {
		says := c.Summary
		if !c.Available {
			says = "not available: " + c.Reason
			if c.Package != "" {
				says += " (install the package " + c.Package + ")"
			}
		}
		fmt.Fprintf(t, "%s\t%s\n", c.Name, says)
	}
	t.Flush()
	return b.String()
}

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}
