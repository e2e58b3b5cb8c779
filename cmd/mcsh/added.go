package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/internal/exactjson"
	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/servers/strictjson"
	"github.com/mcsh-dev/mcsh/upstream/config"
)

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
	cmd.Flags().StringArrayVar(&s.configs, "config", nil, "file with commands of your own, docs/configuration.md (repeatable; default: $"+configVariable+", else the user's)")
}

// files opens the configuration files.
func (p *program) files(s settings) []*config.File {
	return convert(p.configFiles(s), func(path string) *config.File { return &config.File{Path: path, Lookup: p.lookup} })
}

// addCommands opens the configuration files and gives the settings the operator's commands in them.
func (p *program) addCommands(ctx context.Context, s *settings) error {
	s.files = p.files(*s)
	var all []programs.Addition
	for _, f := range s.files {
		more, err := additions(ctx, f)
		switch {
		case ctx.Err() != nil: // an interrupted read is not a wrong configuration
			return fmt.Errorf("the configuration of servers is still being read: %w", ctx.Err())
		case err != nil:
			return wrongConfig(err)
		}
		all = append(all, more...)
	}
	var err error
	if s.sandbox.added, err = programs.Add(all); err != nil {
		return wrongConfig(fmt.Errorf("the configurations together: %s: %w", sandboxSection, err))
	}
	return nil
}

func wrongConfig(err error) error {
	return configError("fix the configuration; nothing was started", err)
}

// additions reads the commands of a file.
func additions(ctx context.Context, f *config.File) ([]programs.Addition, error) {
	section, place, err := f.Section(ctx, sandboxSection)
	if err != nil {
		return nil, err
	}
	all, err := readSection(section)
	if err == nil {
		_, err = programs.Add(all)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", place, sandboxSection, err)
	}
	return all, nil
}

// readSection reads the commands of a section. Other clients have a section of this name too, with other members: it is ignored.
func readSection(section json.RawMessage) (all []programs.Addition, err error) {
	members, err := exactjson.List(section)
	if err != nil {
		return nil, nil
	}
	commands := map[string]json.RawMessage{}
	for _, m := range members {
		commands[m.Name] = m.Value
		if m.Name != commandsSection && m.Value[0] == '{' && nearest.Name(m.Name, []string{commandsSection}) != "" { // no list of another client
			return nil, fmt.Errorf("unknown key %q; did you mean %q?", texts.Cut(m.Name, 60), commandsSection)
		}
	}
	list, there := commands[commandsSection]
	switch {
	case !there:
		return nil, nil
	case len(members) > 1:
		return nil, fmt.Errorf("want %q alone, without other keys", commandsSection)
	}
	if members, err = exactjson.List(list); err != nil {
		return nil, fmt.Errorf("%s: want an object with a member per command", commandsSection)
	}
	for _, m := range members {
		a, err := readAddition(m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", texts.Quote(m.Name), err)
		}
		all = append(all, a)
	}
	return all, nil
}

func readAddition(m exactjson.Member) (a programs.Addition, err error) {
	var in additionJSON
	if err := strictjson.Decode("key", m.Value, &in, "path", "summary"); err != nil {
		return a, err
	}
	a = programs.Addition{Name: m.Name, Path: in.Path, Summary: in.Summary, Operands: in.Operands, Threads: in.Threads}
	for i, text := range in.Options {
		var o additionOptionJSON
		if err := strictjson.Decode("key", text, &o); err != nil {
			return a, fmt.Errorf("options[%d]: %w", i, err)
		}
		a.Options = append(a.Options, programs.AdditionOption(o))
	}
	return a, nil
}
