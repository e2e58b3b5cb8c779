package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/sandbox"
)

const doctorLong = `Look at everything that pipelines run on, and say what is there, what is weaker than it could be, and what is
missing, with what to do about it. Nothing is changed.

Exit status: 0 pipelines with commands can run and all servers answer, 2 something is missing.`

// A status says how well something is.
type status string

// The statuses. Only what has failed keeps pipelines from running.
const (
	statusOK      status = "ok"
	statusNote    status = "note"
	statusWarning status = "warning"
	statusFailed  status = "failed"
)

// A finding is one thing that the doctor says.
type finding struct {
	Check  string `json:"check"` // the row of the table that says it
	Status status `json:"status"`
	Text   string `json:"text"`
	Hint   string `json:"hint,omitempty"` // what to do
}

// A check is one row of what the doctor looks at.
type check struct {
	name string
	run  func(ctx context.Context, d *diagnosis) []finding
}

// checks is the table, in the order of what is printed. Later rows see what earlier ones have found out.
var checks = []check{
	{"system", checkSystem},
	{"engine", checkEngine},
	{"backends", checkBackends},
	{"commands", checkCommands},
	{"programs", checkPrograms},
	{"toolhive", checkToolHive},
	{"config", checkConfig},
	{"servers", checkServers},
	{"clients", checkClients},
	{"callers", checkCallers},
}

// A diagnosis is what checks know.
type diagnosis struct {
	program  *program
	settings settings

	report *sandbox.Report // of the backend that commands run in; nil: there is none. Set by checkBackends.
	why    error           // why there is none
}

// doctorJSON is what doctor --json prints.
type doctorJSON struct {
	Usable   bool         `json:"usable"` // nothing has failed
	Findings []finding    `json:"findings"`
	Sandbox  *sandboxJSON `json:"sandbox,omitempty"` // what commands run in
}

func (p *program) doctorCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what works on this machine, and what is missing",
		Long:  doctorLong,
		Args:  cobra.NoArgs,
		RunE:  work(func(ctx context.Context, _ []string) error { return p.doctor(ctx, s) }),
	}
	s.addSources(cmd)
	p.addSandbox(cmd, &s.sandbox)
	p.addJSON(cmd, "print one JSON object")
	return cmd
}

// doctor runs the checks and prints what they find.
func (p *program) doctor(ctx context.Context, s settings) error {
	if _, err := findBackend(s.sandbox.backend, backends); err != nil {
		return err
	}
	d := &diagnosis{program: p, settings: s, why: errors.New("no backend was looked at")}
	said := doctorJSON{Usable: true, Findings: []finding{}}
	for _, c := range checks {
		for _, f := range c.run(ctx, d) {
			f.Check = c.name
			said.Findings = append(said.Findings, f)
			said.Usable = said.Usable && f.Status != statusFailed
			if !p.json {
				if _, err := fmt.Fprint(p.stdout, f.text()); err != nil {
					return err
				}
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if d.report != nil {
		list := describeSandbox(*d.report)
		said.Sandbox = &list
	}
	if p.json {
		if err := writeJSON(p.stdout, said); err != nil {
			return err
		}
	}
	if !said.Usable {
		return toldStatus(exitConfig)
	}
	return nil
}

// text is a finding for people.
func (f finding) text() string {
	text := fmt.Sprintf("%-8s %-9s %s\n", f.Status, f.Check, f.Text)
	if f.Hint != "" {
		text += strings.Repeat(" ", 19) + "do: " + f.Hint + "\n"
	}
	return text
}
