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
	s.addBackends(cmd)
	p.addJSON(cmd, "print one JSON object")
	return cmd
}

func (p *program) listCommands(ctx context.Context, s settings) (err error) {
	open, err := findBackend(s.backend, backends)
	if err != nil {
		return err
	}
	pool, err := open(ctx, p, oneRun)
	if err != nil {
		return configError("tool and preview stages work without; commands need Linux with seccomp and Landlock",
			fmt.Errorf("no command can run here: %w", err))
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	list := describeSandbox(pool.Report())
	if p.json {
		return writeJSON(p.stdout, list)
	}
	_, err = fmt.Fprint(p.stdout, list.text())
	return err
}

func describeSandbox(r sandbox.Report) sandboxJSON {
	list := sandboxJSON{Backend: r.Backend, Profile: r.Profile, Landlock: r.Landlock, Seccomp: r.Seccomp, Commands: []commandJSON{}}
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
	fmt.Fprintf(&b, "backend %s, profile %s, Landlock ABI %d, seccomp %s\n\n", s.Backend, s.Profile, s.Landlock, yesNo(s.Seccomp))
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
