package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/deploy"
	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/servers/strictjson"
	"github.com/mcsh-dev/mcsh/upstream/config"
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

// The operator adds commands in a configuration file: {"sandbox": {"commands": {"NAME": {"path": …}}}}.
const (
	sandboxSection  = "sandbox"
	commandsSection = "commands"
)

// An additionJSON is a [programs.Addition] in a file.
type additionJSON struct {
	Path     string            `json:"path"`
	Summary  string            `json:"summary"`
	Options  []json.RawMessage `json:"options"`
	Operands string            `json:"operands"`
	Threads  bool              `json:"threads"`
}

// An additionOptionJSON is a [programs.AdditionOption] in a file.
type additionOptionJSON struct {
	Long  string `json:"long"`
	Short string `json:"short"`
	Takes string `json:"takes"`
}

// addConfig adds --config.
func (s *settings) addConfig(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.configs, "config", nil,
		"file with commands of your own, docs/configuration.md (repeatable; default: $"+configVariable+", else the user's)")
}

// addCommands opens the configuration files and gives the settings the operator's commands in them. The sandbox starts once:
// a file whose commands change later is wrong from then on.
func (p *program) addCommands(ctx context.Context, s *settings) error {
	if s.files != nil {
		return nil
	}
	s.files = p.openConfigs(*s)
	var all []programs.Addition
	var errs []error
	for _, f := range s.files {
		before := all
		members, err := f.Members(ctx)
		if err == nil {
			all, err = additions(before, members)
		}
		errs = append(errs, err)
		started := all
		f.Others = func(members []config.Member) error {
			now, err := additions(before, members)
			if err == nil && !reflect.DeepEqual(now, started) {
				err = fmt.Errorf("%s: %s.%s: these commands have changed, and are read at the start alone: restart mcsh",
					f.Path, sandboxSection, commandsSection)
			}
			return err
		}
	}
	if ctx.Err() != nil { // an interrupted read is not a wrong configuration
		return fmt.Errorf("the configuration of servers is still being read: %w", ctx.Err())
	}
	if err := errors.Join(errs...); err != nil {
		return wrongConfig(err)
	}
	var err error
	s.sandbox.added, err = programs.Add(all)
	return err
}

func wrongConfig(err error) error {
	return configError("fix the configuration; nothing was started", err)
}

// additions returns the commands before and those of a file with these members. The error has its place.
func additions(before []programs.Addition, members []config.Member) ([]programs.Addition, error) {
	list, err := commandsIn(members)
	if err != nil {
		return before, err
	}
	all := slices.Clone(before)
	for _, m := range list {
		a, err := readAddition(m)
		if err == nil {
			all = append(all, a)
			_, err = programs.Add(all)
		}
		if err != nil {
			return before, fmt.Errorf("%s: %s: %w", m.Place(), sandboxSection, err)
		}
	}
	return all, nil
}

// commandsIn finds the commands in the members of a file. Other clients have a section of this name too, with other members:
// it is ignored.
func commandsIn(members []config.Member) ([]config.Member, error) {
	section, err := onlyMember(members, sandboxSection)
	if section == nil || err != nil {
		return nil, err
	}
	inside, _ := section.Members()
	commands, err := onlyMember(inside, commandsSection)
	if err != nil {
		return nil, err
	}
	for _, m := range inside {
		_, object := m.Members() // no list of another client
		switch {
		case m.Name == commandsSection:
		case commands != nil:
			return nil, fmt.Errorf("%s: %s: unknown key %q; beside %q there is none",
				m.Place(), sandboxSection, texts.Cut(m.Name, 60), commandsSection)
		case object && nearest.Name(m.Name, []string{commandsSection}) != "":
			return nil, fmt.Errorf("%s: %s: unknown key %q; did you mean %q?",
				m.Place(), sandboxSection, texts.Cut(m.Name, 60), commandsSection)
		}
	}
	if commands == nil {
		return nil, nil
	}
	list, object := commands.Members()
	if !object {
		return nil, fmt.Errorf("%s: %s: %s: want an object with a member per command",
			commands.Place(), sandboxSection, commandsSection)
	}
	return list, nil
}

// onlyMember returns the member of that name; nil: there is none.
func onlyMember(members []config.Member, name string) (found *config.Member, err error) {
	for _, m := range members {
		switch {
		case m.Name != name:
		case found != nil:
			return nil, fmt.Errorf("%s: %s: it is there twice, first at %s", m.Place(), name, found.Place())
		default:
			found = &m
		}
	}
	return found, nil
}

func readAddition(m config.Member) (a programs.Addition, err error) {
	var in additionJSON
	if err := strictjson.Decode("key", m.JSON(), &in, "path", "summary"); err != nil {
		return a, fmt.Errorf("%s: %w", texts.Quote(m.Name), err)
	}
	if in.Summary == "" {
		return a, fmt.Errorf("%s: summary: say in a few words what it does: agents read it", texts.Quote(m.Name))
	}
	a = programs.Addition{Name: m.Name, Path: in.Path, Summary: in.Summary, Operands: in.Operands, Threads: in.Threads}
	for i, text := range in.Options {
		var o additionOptionJSON
		if err := strictjson.Decode("key", text, &o); err != nil {
			return a, fmt.Errorf("%s: options[%d]: %w", texts.Quote(m.Name), i, err)
		}
		a.Options = append(a.Options, programs.AdditionOption(o))
	}
	return a, nil
}
