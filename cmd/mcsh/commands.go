package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/deploy"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

type commandJSON struct {
	Name      string `json:"name"`
	Summary   string `json:"summary"`
	Notes     string `json:"notes,omitempty"`
	Available bool   `json:"available"`
	Reason    string `json:"reason,omitempty"` // of an unavailable command
	Package   string `json:"package,omitempty"`
	Version   string `json:"version,omitempty"`
}

type sandboxJSON struct {
	Backend  string        `json:"backend"`
	Profile  string        `json:"profile"`
	Landlock int           `json:"landlock"`
	Seccomp  bool          `json:"seccomp"`
	Gaps     []string      `json:"gaps,omitempty"` // missing layers of isolation on this kernel
	Notes    []string      `json:"notes,omitempty"`
	Commands []commandJSON `json:"commands"`
}

func (p *program) commandsCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "commands [COMMAND]",
		Short: "List the commands of pipelines and where they run, or show the page of one",
		Args:  cobra.MaximumNArgs(1),
	}
	names := func(ctx context.Context) []string {
		s.configs = slices.Compact(slices.Sorted(slices.Values(s.configs))) // cobra parses the flags twice
		_ = p.addCommands(ctx, &s)                                          // a completion cannot report an error
		return convert(s.sandbox.added.All(), func(row programs.Program) string { return row.Name + "\t" + row.Summary })
	}
	return command(cmd, func(ctx context.Context, args []string) error {
		if err := p.addCommands(ctx, &s); err != nil {
			return err
		}
		if len(args) == 0 {
			return p.listCommands(ctx, s)
		}
		page, err := s.sandbox.added.PageOf(args[0]) // without a sandbox: pages are the same on every machine
		if err != nil {
			return err
		}
		return p.print(page, fmt.Sprint(page))
	}, completing(firstArgument, names), s.addConfig, p.sandboxFlags(&s.sandbox), p.jsonFlag("print one JSON object"))
}

func (p *program) listCommands(ctx context.Context, s settings) (err error) {
	s.sandbox.warm = 0
	opened, err := openFirst(ctx, p, s.sandbox, s.sandbox.allowed)
	if err != nil {
		return configError("mcsh doctor shows what is missing; tool and preview stages work without commands",
			fmt.Errorf("no command can run here: %w", err))
	}
	defer func() { err = errors.Join(err, opened.pool.Close()) }()
	report := opened.report()
	list, head := describeSandbox(report), "backend "+sandboxLine(report)
	if report.Backend == "docker" {
		head += ", image " + s.sandbox.image
	}
	return p.print(list, head+"\n"+list.text())
}

func describeSandbox(r sandbox.Report) sandboxJSON {
	list := sandboxJSON{
		Backend: r.Backend, Profile: r.Profile, Landlock: r.Landlock, Seccomp: r.Seccomp, Gaps: r.Gaps, Notes: r.Notes,
		Commands: []commandJSON{},
	}
	for _, a := range r.Programs {
		c := commandJSON{Name: a.Name, Available: a.Refusal == "", Reason: a.Refusal, Package: a.Package, Version: a.Version}
		if row, ok := r.Added.Find(a.Name); ok {
			c.Summary, c.Notes = row.Summary, row.Notes
		}
		list.Commands = append(list.Commands, c)
	}
	return list
}

// text lists the notes and the commands.
func (s sandboxJSON) text() string {
	var b strings.Builder
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
	b.WriteString("\nmcsh commands COMMAND shows its options, an example and what differs.\n")
	return b.String()
}

func (p *program) sandboxBuildCommand() *cobra.Command {
	var s sandboxSettings
	var base, binaries string
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build the image of sandbox containers",
		Long: `Build the image of sandbox containers: the programs of commands, this mcsh and its mcsh-worker, on a base.
An image is never built unasked. No checkout of the sources is needed.

The base is any image of Debian or Ubuntu. The engine pulls one that it does not have; where no registry can be
reached, deploy/base-image.sh of the sources makes one that needs no network.`,
		Example: "  mcsh sandbox build\n  mcsh sandbox build --base mcsh-base",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&base, "base", "", "the image to begin with (default: Debian from the public registry)")
	cmd.Flags().StringVar(&binaries, "binaries", "", "directory with mcsh and mcsh-worker for Linux (default: that of this program)")
	return command(cmd, func(ctx context.Context, _ []string) error {
		files, err := imageFiles(binaries)
		if err != nil {
			return err
		}
		engine, err := s.connect(ctx)
		if err != nil {
			return err
		}
		defer engine.Close()
		recipe := docker.Recipe{Tag: s.image, Base: base, Dockerfile: deploy.Dockerfile, Files: files}
		if err := engine.Build(ctx, recipe, p.stderr); err != nil {
			return configError("", err)
		}
		_, err = fmt.Fprintln(p.text, s.image)
		return err
	}, p.engineFlags(&s))
}

func (s sandboxSettings) engine() docker.Options {
	return docker.Options{Host: s.host, CertDir: s.certDir, Image: s.image, Make: s.buildCommand(), Workspace: s.workspace, Added: s.added.Text()}
}

// connect connects to the engine of the settings.
func (s sandboxSettings) connect(ctx context.Context) (*docker.Engine, error) {
	engine, err := docker.Connect(ctx, s.engine())
	if err != nil {
		return nil, configError("commands also run without an engine where the kernel allows it: mcsh doctor", err)
	}
	return engine, nil
}

// imageFiles returns the programs for an image by their names in the recipe.
func imageFiles(dir string) (map[string]string, error) {
	if dir == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, configError("name their directory: --binaries DIR", fmt.Errorf("finding mcsh and mcsh-worker: %w", err))
		}
		dir = filepath.Dir(self)
	}
	files := map[string]string{}
	for _, name := range []string{"mcsh", workerBinary} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err != nil {
			return nil, configError("install both, such as with go install ./cmd/..., or name the directory that has them: --binaries DIR",
				fmt.Errorf("the image needs mcsh and %s of one directory: %w", workerBinary, err))
		}
		files["bin/"+name] = path
	}
	return files, nil
}

func (p *program) sandboxStatusCommand() *cobra.Command {
	var s sandboxSettings
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the container engine, its image and the containers of mcsh",
		Args:  cobra.NoArgs,
	}
	return command(cmd, func(ctx context.Context, _ []string) error {
		engine, err := s.connect(ctx)
		if err != nil {
			return err
		}
		defer engine.Close()
		e, err := engine.Status(ctx, s.image)
		if err != nil {
			return configError("", err)
		}
		return p.print(e, statusText(e, s.buildCommand()))
	}, p.engineFlags(&s), p.jsonFlag("print one JSON object"))
}

func statusText(e docker.Status, build string) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "engine\t%s\n", engineLine(e))
	if e.ImageID == "" {
		fmt.Fprintf(t, "image\t%s is missing; build it with: %s\n", e.Image, build)
	} else {
		fmt.Fprintf(t, "image\t%s (%s)\n", e.Image, e.ImageID)
	}
	if len(e.Containers) == 0 {
		fmt.Fprint(t, "containers\tnone\n")
	}
	name := "containers"
	for _, c := range e.Containers {
		fmt.Fprintf(t, "%s\t%.12s %s %s, made %s by %s\n", name, c.ID, c.Role, c.State, c.Created.Format(time.RFC3339), c.Instance)
		name = ""
	}
	t.Flush()
	return b.String()
}
