package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
)

// sandboxSettings are what a command line or the environment says about where commands run.
type sandboxSettings struct {
	backend   string   // a name of the table, backendAuto or backendOff
	host      string   // of the container engine; empty: where it usually is
	certDir   string   // for an engine behind TLS; from the environment only
	image     string   // empty: the one of this release
	isolation string   // of containers and workers
	warm      int      // workers that wait, or ownChoice
	max       int      // workers in use, or ownChoice
	require   []string // names of [sandbox.Requirements]
	workspace string   // absolute, of --workspace, whose files commands may read; empty: there is none
}

// ownChoice leaves a number to the backend.
const ownChoice = -1

// isolations are what a container, and a worker, serves: one caller's runs, or a single run.
var isolations = []string{"caller", "run"}

// A sandboxFlag is one flag with the environment variables that stand for it where it is not given, the first that is
// set.
type sandboxFlag struct {
	name      string
	variables []string
}

// sandboxFlags is the table. The engine's own variables are those of its other clients.
var sandboxFlags = []sandboxFlag{
	{"sandbox", []string{"MCSH_SANDBOX"}},
	{"sandbox-host", []string{"MCSH_SANDBOX_HOST", "DOCKER_HOST"}},
	{"sandbox-image", []string{"MCSH_SANDBOX_IMAGE"}},
	{"sandbox-isolation", []string{"MCSH_SANDBOX_ISOLATION"}},
	{"sandbox-warm", []string{"MCSH_SANDBOX_WARM"}},
	{"sandbox-max", []string{"MCSH_SANDBOX_MAX"}},
	{"sandbox-require", []string{"MCSH_SANDBOX_REQUIRE"}},
}

// addSandbox adds the flags that say where commands run.
func (p *program) addSandbox(cmd *cobra.Command, s *sandboxSettings) {
	help := []string{backendAuto + " (the first backend whose audit passes)"}
	names := []string{backendAuto}
	for _, b := range backends {
		help = append(help, b.name+" ("+b.summary+")")
		names = append(names, b.name)
	}
	help, names = append(help, backendOff+" (no commands)"), append(names, backendOff)
	f := cmd.Flags()
	f.StringVar(&s.backend, "sandbox", backendAuto, "where commands run: "+strings.Join(help, ", "))
	f.StringVar(&s.isolation, "sandbox-isolation", isolations[0], "what a container, and a worker, serves: "+strings.Join(isolations, " or "))
	f.IntVar(&s.warm, "sandbox-warm", ownChoice, "workers that wait for the next run (default: the backend's choice)")
	f.IntVar(&s.max, "sandbox-max", ownChoice, "workers that runs hold at a time; then runs wait (default: the backend's choice)")
	f.StringSliceVar(&s.require, "sandbox-require", nil,
		"refuse a backend that lacks one of these, with commas between: "+strings.Join(sandbox.Requirements(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("sandbox", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	p.addEngine(cmd, s)
}

// addEngine adds the flags that say which container engine and image are meant, and has the environment stand for all
// flags of the sandbox.
func (p *program) addEngine(cmd *cobra.Command, s *sandboxSettings) {
	s.warm, s.max = ownChoice, ownChoice
	f := cmd.Flags()
	f.StringVar(&s.host, "sandbox-host", "", "the container engine, such as unix:///var/run/docker.sock ($DOCKER_HOST)")
	f.StringVar(&s.image, "sandbox-image", "", "the image of sandbox containers (default "+docker.DefaultImage(release())+")")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if err := p.fromEnvironment(f); err != nil {
			return err
		}
		if p.env["DOCKER_TLS_VERIFY"] != "" {
			s.certDir = p.env["DOCKER_CERT_PATH"]
		}
		return s.check()
	}
}

// fromEnvironment sets the flags of the sandbox that are not given.
func (p *program) fromEnvironment(f *pflag.FlagSet) error {
	for _, row := range sandboxFlags {
		if f.Lookup(row.name) == nil || f.Changed(row.name) {
			continue
		}
		for _, variable := range row.variables {
			value := p.env[variable]
			if value == "" {
				continue
			}
			if err := f.Set(row.name, value); err != nil {
				return usageError("mend or unset the variable", "$%s stands for --%s: %w", variable, row.name, err)
			}
			break
		}
	}
	return nil
}

// optionWarm is the number of workers that wait as options have it: zero is their own choice, below zero none.
func (s *sandboxSettings) optionWarm() int {
	switch s.warm {
	case ownChoice:
		return 0
	case 0:
		return -1
	}
	return s.warm
}

// check finds mistakes that can be seen without a backend.
func (s *sandboxSettings) check() error {
	for _, name := range s.require {
		if !sandbox.IsRequirement(name) {
			return usageError("use some of: "+strings.Join(sandbox.Requirements(), ", "), "--sandbox-require %q: there is no such requirement", name)
		}
	}
	if s.isolation != "" && !slices.Contains(isolations, s.isolation) {
		return usageError("use one of: "+strings.Join(isolations, ", "), "--sandbox-isolation %q: there is no such isolation", s.isolation)
	}
	if s.max == 0 || s.max < ownChoice || s.warm < ownChoice {
		return usageError("give a number of workers above zero; --sandbox-warm may be 0", "--sandbox-max or --sandbox-warm is too small")
	}
	if s.image == "" {
		s.image = docker.DefaultImage(release())
	}
	return nil
}

// unreleased is the version of a program that was built between two releases.
var unreleased = regexp.MustCompile(`\+|[-.]\d{14}-[0-9a-f]{12}$`)

// release is the version by which the image of this program is named. What is no release shares one name.
func release() string {
	v := version()
	if unreleased.MatchString(v) {
		return ""
	}
	return v
}

// buildCommand is what makes the image that the settings name.
func (s *sandboxSettings) buildCommand() string {
	command := "mcsh sandbox build"
	if s.host != "" {
		command += " --sandbox-host " + s.host
	}
	if s.image != "" && s.image != docker.DefaultImage(release()) {
		command += " --sandbox-image " + s.image
	}
	return command
}
